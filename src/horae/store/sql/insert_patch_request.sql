-- Remember a patch of a schedule; no row if it was remembered before.
INSERT INTO patch_request (schedule_key, generation, request_id, created_at_ms)
VALUES (:schedule_key, :generation, :request_id, :now)
ON CONFLICT (schedule_key, generation, request_id) DO NOTHING
RETURNING request_id
