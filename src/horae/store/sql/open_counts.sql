-- How many open runs some schedules have, by status.
SELECT schedule_key, status, count(*) FROM run
WHERE schedule_key {among(keys, text)} AND {open(status)}
GROUP BY schedule_key, status
