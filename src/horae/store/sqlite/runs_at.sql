-- The runs of a schedule at a nominal time, oldest first, each with the start of its first attempt that began.
-- All ids of that time begin alike, and so an index finds them.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop,
    coalesce((SELECT a.started_at FROM attempt AS a WHERE a.run_id = run.id AND a.started_at IS NOT NULL
        ORDER BY a.attempt LIMIT 1), run.started_at), ended_at, author, note, input, result, failure
FROM run
WHERE id >= :from_id AND id < :to_id AND +schedule_id = :id
ORDER BY number
