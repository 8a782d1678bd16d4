-- The latest runs of a schedule, newest first; those before one.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure
FROM run
WHERE schedule_id = :id AND (:before::text IS NULL OR number < (SELECT number FROM run WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
