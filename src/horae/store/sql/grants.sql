-- A page of all grants.
SELECT {columns(execution_grant)} FROM execution_grant WHERE id > :after ORDER BY id LIMIT :limit
