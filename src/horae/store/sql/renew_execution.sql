-- Set until when an execution holds its request.
UPDATE execution SET lease_until_ms = :until_ms
WHERE user_id = :user_id AND key = :key AND holder = :holder AND status = 'running'
RETURNING stopping
