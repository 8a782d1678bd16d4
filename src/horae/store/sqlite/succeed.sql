-- Attempts that ended well: the usual end, with no more to write than that. A stale claim matches no row.
UPDATE run SET status = 'succeeded', reason = '', started_at = :started_at, ended_at = :ended_at, result = :result,
    failure = NULL, stop = ''
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
