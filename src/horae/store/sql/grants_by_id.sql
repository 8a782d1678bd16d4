-- The grants with the given ids.
SELECT {columns(execution_grant)} FROM execution_grant WHERE id {among(ids, text)}
