-- The outcomes of the latest run and of the latest unstarted range of each of the given schedules.
SELECT run.schedule_key, run.status, run.nominal_ms, run.decided_at_ms, run.id
FROM schedule JOIN run ON run.number = (SELECT max(number) FROM run AS r WHERE r.schedule_key = schedule.key)
WHERE schedule.key {among(keys, text)}
UNION ALL
SELECT missing.schedule_key, missing.status, missing.end_ms, missing.decided_at_ms, NULL
FROM schedule JOIN unstarted_range AS missing
    ON missing.number = (SELECT max(number) FROM unstarted_range AS r WHERE r.schedule_key = schedule.key)
WHERE schedule.key {among(keys, text)}
