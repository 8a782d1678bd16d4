-- The schedules that are due, the longest overdue first.
SELECT {columns(schedule)}
FROM due JOIN schedule ON schedule.id = due.schedule_id
WHERE next_at_ms <= :now
ORDER BY next_at_ms
LIMIT :limit
