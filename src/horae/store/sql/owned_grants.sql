-- A page of a user's grants.
SELECT {columns(execution_grant)} FROM execution_grant
WHERE user_id = :user_id AND id > :after ORDER BY id LIMIT :limit
