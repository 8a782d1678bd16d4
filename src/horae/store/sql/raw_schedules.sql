-- A page of the schedules of one owner as they are stored, in the order of their ids.
SELECT {columns(raw_schedule)}
FROM schedule JOIN due ON due.schedule_key = schedule.key
WHERE owner = :owner AND id > :after
ORDER BY id
LIMIT :limit
