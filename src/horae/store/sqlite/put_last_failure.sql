-- A failure for the next run, which gets the last result too, if the schedule is still the one that it ran for.
INSERT INTO last_outcome (schedule_id, failure)
SELECT :schedule_id, :failure
WHERE EXISTS (SELECT 1 FROM schedule WHERE id = :schedule_id AND generation = :generation)
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
