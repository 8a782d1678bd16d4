-- The runs of a schedule at a nominal time, oldest first. All ids of that time begin alike, and so an index finds them.
SELECT id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure
FROM run
WHERE id >= :from_id AND id < :to_id AND +schedule_id = :id
ORDER BY number
