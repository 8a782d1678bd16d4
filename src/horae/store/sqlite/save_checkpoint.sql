-- Save a value under the claim of an attempt; a stale claim saves nothing, and returns no row.
INSERT INTO checkpoint (run_id, key, value, attempt, saved_at)
SELECT id, :key, :value, :attempt, :saved_at FROM run
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value, attempt = excluded.attempt, saved_at = excluded.saved_at
RETURNING run_id
