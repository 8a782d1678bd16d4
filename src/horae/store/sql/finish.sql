-- Record how attempts ended, under their claims. A stale claim matches no row.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET status = new.status, started_at = new.started_at, ended_at = new.ended_at, result = new.result,
    failure = new.failure, reason = new.reason, start_at = coalesce(new.start_at, run.start_at),
    failures = new.failures, refusals = new.refusals, crashes = new.crashes, stop = '', report_by = NULL
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
