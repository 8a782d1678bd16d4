-- A page of the schedules that pass a filter, in the order of their ids.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_id = schedule.id
WHERE id > :after
{include(filter)}
ORDER BY id
LIMIT :limit
