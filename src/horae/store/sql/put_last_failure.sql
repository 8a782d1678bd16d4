-- Keep a failure for the next run, which gets the last result too, unless the schedule was created again since.
INSERT INTO last_outcome (schedule_id, failure)
SELECT new.schedule_id, new.failure
{from_new}
WHERE (SELECT generation FROM schedule WHERE id = new.schedule_id) = new.generation
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
