-- How many open runs some schedules have, by status.
SELECT schedule_id, status, count(*) FROM run
WHERE schedule_id {among(ids, text)} AND status {open}
GROUP BY schedule_id, status
