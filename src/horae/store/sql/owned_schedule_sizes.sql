-- The ids and sizes of a page of the schedules of one owner that pass a filter.
SELECT id, {size(schedule)}
FROM schedule
WHERE owner = :owner AND id > :after
{include(filter)}
ORDER BY id
LIMIT :limit
