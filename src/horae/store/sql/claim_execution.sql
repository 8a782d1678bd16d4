-- Begin an execution; one that has ended, or whose lease has not, stays.
INSERT INTO execution ({inserted(execution)})
VALUES ({parameters(execution)})
ON CONFLICT (user_id, key) DO UPDATE SET {excluded(execution)}
WHERE execution.status = 'running' AND execution.lease_until_ms <= excluded.created_at_ms
RETURNING key
