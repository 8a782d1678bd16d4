-- The ids and sizes of a page of the schedules of one owner that a filter lets through.
SELECT s.id, octet_length(s.spec) + octet_length(s.action) + octet_length(s.state) + octet_length(s.tags)
    + coalesce(octet_length(s.memo), 0) + coalesce(octet_length(s.search_attributes), 0)
FROM schedule AS s
WHERE s.owner = :owner AND s.id > :after
-- include filter
ORDER BY s.id
LIMIT :limit
