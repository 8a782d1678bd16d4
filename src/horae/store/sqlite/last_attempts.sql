-- When the latest attempt of each of some schedules began.
SELECT schedule_id, max(started_at) FROM run
WHERE schedule_id IN (SELECT value FROM json_each(:ids)) AND started_at IS NOT NULL
GROUP BY schedule_id
