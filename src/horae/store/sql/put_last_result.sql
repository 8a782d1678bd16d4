-- Keep a result for the next run, unless the schedule was created again since.
INSERT INTO last_outcome (schedule_key, result)
SELECT new.schedule_key, new.result
{from_new}
WHERE (SELECT generation FROM schedule WHERE key = new.schedule_key) = new.generation
ON CONFLICT (schedule_key) DO UPDATE SET result = excluded.result, failure = NULL
