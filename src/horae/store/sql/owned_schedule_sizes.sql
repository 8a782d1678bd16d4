-- The keys and sizes of a page of the schedules of one owner that pass a filter.
SELECT key, {size(schedule)}
FROM schedule
WHERE owner = :owner AND id > :after_id
{include(filter)}
ORDER BY id
LIMIT :limit
