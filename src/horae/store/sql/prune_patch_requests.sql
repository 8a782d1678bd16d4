-- Delete the oldest patch requests from before a moment.
DELETE FROM patch_request WHERE (schedule_key, generation, request_id) IN (
    SELECT schedule_key, generation, request_id FROM patch_request WHERE created_at_ms < :before_ms ORDER BY created_at_ms LIMIT :limit
)
RETURNING request_id
