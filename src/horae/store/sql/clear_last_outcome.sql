-- Clear the last outcomes of schedules whose run succeeded without a result, unless the schedule was created again
-- since. Only schedules whose runs left something have a row.
UPDATE last_outcome SET result = NULL, failure = NULL
{from_new}
WHERE last_outcome.schedule_key = new.schedule_key
    AND (last_outcome.result IS NOT NULL OR last_outcome.failure IS NOT NULL)
    AND (SELECT generation FROM schedule WHERE key = new.schedule_key) = new.generation
