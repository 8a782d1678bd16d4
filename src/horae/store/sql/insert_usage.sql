-- Record usage, once.
INSERT INTO usage_record ({inserted(usage_record)})
VALUES ({parameters(usage_record)})
ON CONFLICT (run_id, attempt, unit) DO NOTHING
RETURNING run_id
