-- Record how attempts ended, under their claims. A stale claim matches no row.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET status = new.status, started_at_ms = new.started_at_ms, ended_at_ms = new.ended_at_ms, result = new.result,
    failure = new.failure, reason = new.reason, start_at_ms = coalesce(new.start_at_ms, run.start_at_ms),
    failures = new.failures, refusals = new.refusals, crashes = new.crashes, stop = '', report_by_ms = NULL
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
