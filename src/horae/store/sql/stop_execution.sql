-- Ask an execution to stop.
UPDATE execution SET stopping = TRUE
WHERE user_id = :user_id AND key = :key AND status = 'running'
RETURNING key
