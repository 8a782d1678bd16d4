-- A result for the next run, if the schedule is still the one that it ran for.
INSERT INTO last_outcome (schedule_id, result)
SELECT :schedule_id, :result
WHERE EXISTS (SELECT 1 FROM schedule WHERE id = :schedule_id AND generation = :generation)
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
