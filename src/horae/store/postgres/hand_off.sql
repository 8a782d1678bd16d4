-- Somebody else goes on with attempts: nobody holds the runs, and something must be heard of them in time.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET epoch = 0, started_at = new.started_at, report_by = new.report_by
FROM unnest(:run_id::text[], :epoch::bigint[], :attempt::bigint[], :started_at::bigint[], :report_by::bigint[])
    AS new (run_id, epoch, attempt, started_at, report_by)
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
