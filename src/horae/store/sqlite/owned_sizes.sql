-- The ids and sizes of a page of the schedules of one owner that a filter lets through.
SELECT s.id, length(CAST(s.spec AS BLOB)) + length(CAST(s.action AS BLOB)) + length(CAST(s.state AS BLOB)) + length(CAST(s.tags AS BLOB))
    + coalesce(length(CAST(s.memo AS BLOB)), 0) + coalesce(length(CAST(s.search_attributes AS BLOB)), 0)
FROM schedule AS s
WHERE s.owner = :owner AND s.id > :after
-- include filter
ORDER BY s.id
LIMIT :limit
