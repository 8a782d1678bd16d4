-- The record of an execution request.
SELECT {columns(execution)} FROM execution WHERE user_id = :user_id AND key = :key
