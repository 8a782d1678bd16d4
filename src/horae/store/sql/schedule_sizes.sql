-- The ids and sizes of a page of the schedules that pass a filter.
SELECT id, {size(schedule)}
FROM schedule
WHERE id > :after
{include(filter)}
ORDER BY id
LIMIT :limit
