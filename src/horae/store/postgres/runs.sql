-- The latest runs of a schedule, newest first.
SELECT id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, reason, attempt, epoch,
    started_at, ended_at, input, result, failure
FROM run
WHERE schedule_id = $1
ORDER BY number DESC
LIMIT $2
