-- The given schedules in the order of their ids and owners, not locked.
SELECT {columns(schedule)}
FROM schedule JOIN due ON due.schedule_key = schedule.key
WHERE key {among(keys, text)}
ORDER BY id, owner
