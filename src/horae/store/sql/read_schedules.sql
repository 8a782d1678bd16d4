-- Some schedules, in the order of their ids, without a lock.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_id = schedule.id
WHERE id {among(ids, text)}
ORDER BY id
