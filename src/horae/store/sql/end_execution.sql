-- Store how an execution ended, if it still holds its request.
UPDATE execution SET status = 'ended', outcome = :outcome
WHERE user_id = :user_id AND key = :key AND holder = :holder AND status = 'running'
RETURNING key
