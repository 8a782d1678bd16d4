-- Lock the schedules of released runs that wait for a node with one of some actions; they are read after that.
SELECT schedule_key FROM due
WHERE schedule_key IN (
    SELECT schedule_key FROM run
    WHERE status = 'starting' AND action {among(actions, text)}
    ORDER BY number LIMIT :limit
)
FOR UPDATE SKIP LOCKED
