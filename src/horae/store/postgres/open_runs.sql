-- The runs of some schedules that have not ended, oldest first.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure
FROM run
WHERE schedule_id = ANY (:ids::text[]) AND status IN ('pending', 'retrying', 'starting', 'running')
ORDER BY number
