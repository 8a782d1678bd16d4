-- All runs that some node has claimed and not finished.
SELECT id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, reason, attempt, epoch,
    started_at, ended_at, input, result, failure
FROM run
WHERE status IN ('starting', 'running')
ORDER BY number
