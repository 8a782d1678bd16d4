-- The schedules of released runs that wait for a node with one of some actions.
SELECT {columns(schedule)}
FROM due JOIN schedule ON schedule.key = due.schedule_key
WHERE due.schedule_key IN (
    SELECT schedule_key FROM run
    WHERE status = 'starting' AND action {among(actions, text)}
    ORDER BY number LIMIT :limit
)
