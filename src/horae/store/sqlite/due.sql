-- The schedules that are due, the longest overdue first.
SELECT {columns(schedule)}
FROM due JOIN schedule ON schedule.key = due.schedule_key
WHERE next_at_ms <= :now
ORDER BY next_at_ms
LIMIT :limit
