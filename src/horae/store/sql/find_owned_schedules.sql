-- A page of the schedules of one owner that pass a filter, in the order of their ids.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_id = schedule.id
WHERE owner = :owner AND id > :after
{include(filter)}
ORDER BY id
LIMIT :limit
