-- When the latest attempt of each of some schedules began.
SELECT schedule_id, max(started_at) FROM run
WHERE schedule_id = ANY (:ids::text[]) AND started_at IS NOT NULL
GROUP BY schedule_id
