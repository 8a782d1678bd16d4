-- Attempts that an external worker goes on with: no node holds the run, and a report is due in time.
-- The `coalesce` makes the server find these by their ids, instead of going through all open runs.
UPDATE run SET epoch = 0, started_at = new.started_at, report_by = new.report_by
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
