-- Keep a result for the next run, unless the schedule was created again since.
INSERT INTO last_outcome (schedule_id, result)
SELECT new.schedule_id, new.result
{from_new}
WHERE (SELECT generation FROM schedule WHERE id = new.schedule_id) = new.generation
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
