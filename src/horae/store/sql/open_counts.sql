-- How many open runs some schedules have, by status.
SELECT schedule_key, status, count(*) FROM run
WHERE schedule_key {among(keys, text)} AND status {open}
GROUP BY schedule_key, status
