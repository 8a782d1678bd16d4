-- Record attempts that succeeded, the usual end. A stale claim matches no row.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET status = 'succeeded', reason = '', started_at_ms = new.started_at_ms, ended_at_ms = new.ended_at_ms,
    result = new.result, failure = NULL, stop = ''
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
