-- Hand runs over to external workers: no node holds them any more, and a report is due by report_by_ms.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET epoch = 0, started_at_ms = new.started_at_ms, report_by_ms = new.report_by_ms
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
