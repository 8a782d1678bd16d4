-- Until when something must be heard of work that others do; one that was asked to stop never gets more time.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET report_by = new.report_by
FROM unnest(:id::text[], :attempt::bigint[], :report_by::bigint[]) AS new (id, attempt, report_by)
WHERE run.id = new.id AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running' AND run.report_by IS NOT NULL
    AND (run.stop = '' OR run.report_by > new.report_by)
