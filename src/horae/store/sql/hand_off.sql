-- Hand runs over to external workers: no node holds them any more, and a report is due by report_by.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET epoch = 0, started_at = new.started_at, report_by = new.report_by
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
