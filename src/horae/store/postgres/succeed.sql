-- Attempts that ended well: the usual end, with no more to write than that. A stale claim matches no row.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET status = 'succeeded', reason = '', started_at = new.started_at, ended_at = new.ended_at,
    result = new.result, failure = NULL, stop = ''
FROM unnest(:run_id::text[], :epoch::bigint[], :attempt::bigint[], :started_at::bigint[],
    :ended_at::bigint[], :result::text[]) AS new (run_id, epoch, attempt, started_at, ended_at, result)
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
