-- Which schedules have runs that were released and wait for a node that can run them; what they are is read after that.
SELECT schedule_id FROM due
WHERE schedule_id IN (
    SELECT schedule_id FROM run
    WHERE status = 'starting' AND action = ANY (:actions::text[])
    ORDER BY number LIMIT :limit
)
FOR UPDATE SKIP LOCKED
