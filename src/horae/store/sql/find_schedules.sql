-- A page of the schedules that pass a filter, in the order of their ids and owners.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_key = schedule.key
WHERE (id, owner) > (:after_id, :after_owner)
{include(filter)}
ORDER BY id, owner
LIMIT :limit
