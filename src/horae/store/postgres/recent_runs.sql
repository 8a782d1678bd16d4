-- The latest runs of each of some schedules, newest first.
SELECT {columns(run)} FROM {elements(keys, text)} CROSS JOIN LATERAL (
    SELECT * FROM run WHERE run.schedule_key = value ORDER BY number DESC LIMIT :limit
) AS run
ORDER BY run.number DESC
