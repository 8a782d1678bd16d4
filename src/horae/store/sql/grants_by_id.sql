-- Some grants.
SELECT {columns(execution_grant)} FROM execution_grant WHERE id {among(ids, text)}
