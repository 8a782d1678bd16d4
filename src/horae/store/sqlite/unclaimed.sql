-- The schedules of released runs that wait for a node with one of some actions.
SELECT {columns(schedule)}
FROM due JOIN schedule ON schedule.id = due.schedule_id
WHERE due.schedule_id IN (
    SELECT schedule_id FROM run
    WHERE status = 'starting' AND action {among(actions, text)}
    ORDER BY number LIMIT :limit
)
