-- Record attempts that succeeded, the usual end. A stale claim matches no row.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET status = 'succeeded', reason = '', started_at = new.started_at, ended_at = new.ended_at,
    result = new.result, failure = NULL, stop = ''
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
