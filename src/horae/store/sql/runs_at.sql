-- The runs of a schedule at a nominal time, oldest first, each with the start of its first attempt that began.
-- All ids of that time begin alike, so that an index finds them; the `coalesce` rules out the schedule's index.
SELECT {columns(run)}, coalesce((
        SELECT attempt.started_at_ms FROM attempt
        WHERE attempt.run_id = run.id AND attempt.started_at_ms IS NOT NULL
        ORDER BY attempt.attempt LIMIT 1
    ), run.started_at_ms)
FROM run
WHERE id >= :from_id AND id < :to_id AND coalesce(schedule_key, '') = :key
ORDER BY number
