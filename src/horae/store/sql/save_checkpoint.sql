-- Save a value under the claim of an attempt; a stale claim saves nothing, and returns no row.
-- The run is locked, so that no other node can take it over between the check of the claim and the commit.
INSERT INTO checkpoint ({inserted(checkpoint)})
SELECT id, :key, :value, CAST(:attempt AS BIGINT), CAST(:saved_at_ms AS BIGINT) FROM run
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
{share_lock}
ON CONFLICT (run_id, key) DO UPDATE SET {excluded(checkpoint)}
RETURNING run_id
