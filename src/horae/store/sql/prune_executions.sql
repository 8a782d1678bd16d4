-- Delete the oldest executions from before a moment.
DELETE FROM execution WHERE (user_id, key) IN (
    SELECT user_id, key FROM execution WHERE created_at_ms < :before_ms ORDER BY created_at_ms LIMIT :limit
)
RETURNING key
