-- Save a value under the claim of an attempt; a stale claim saves nothing, and returns no row.
-- The run is locked, so that no other node can take it over between the check of the claim and the commit.
INSERT INTO checkpoint (run_id, key, value, attempt, saved_at)
SELECT id, :key, :value, :attempt::bigint, :saved_at::bigint FROM run
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
FOR SHARE
ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value, attempt = excluded.attempt, saved_at = excluded.saved_at
RETURNING run_id
