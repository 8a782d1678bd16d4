-- Keep a failure for the next run, which gets the last result too, unless the schedule was created again since.
INSERT INTO last_outcome (schedule_key, failure)
SELECT new.schedule_key, new.failure
{from_new}
WHERE (SELECT generation FROM schedule WHERE key = new.schedule_key) = new.generation
ON CONFLICT (schedule_key) DO UPDATE SET failure = excluded.failure
