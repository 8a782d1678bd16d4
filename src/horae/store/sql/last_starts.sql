-- When the latest run of each of some schedules began.
SELECT schedule.key, (
    SELECT run.started_at_ms FROM run
    WHERE run.schedule_key = schedule.key AND run.generation = schedule.generation AND run.started_at_ms IS NOT NULL
    ORDER BY run.number DESC LIMIT 1
)
FROM schedule WHERE schedule.key {among(keys, text)}
