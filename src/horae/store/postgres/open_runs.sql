-- The runs of some schedules that have not ended, oldest first.
SELECT id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, reason, attempt, epoch,
    started_at, ended_at, input, result, failure
FROM run
WHERE schedule_id = ANY ($1::text[]) AND status IN ('pending', 'starting', 'running')
ORDER BY number
