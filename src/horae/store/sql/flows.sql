-- A page of flows by name and owner: an owner's, or all if it is NULL.
SELECT {columns(flow)} FROM flow
WHERE (owner = :owner OR CAST(:owner AS TEXT) IS NULL) AND (name > :after_name OR (name = :after_name AND owner > :after_owner))
ORDER BY name, owner
LIMIT :limit
