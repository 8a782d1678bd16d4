-- Who brings this token may report on an attempt; a stale claim matches no row.
UPDATE run SET token_hash = :token_hash
WHERE id = :id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
