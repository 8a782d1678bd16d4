-- A page of the schedules of one owner that pass a filter, in the order of their ids.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_key = schedule.key
WHERE owner = :owner AND id > :after_id
{include(filter)}
ORDER BY id
LIMIT :limit
