-- Make schedules due, unless they are already.
UPDATE due SET next_at_ms = CASE WHEN next_at_ms < :now THEN next_at_ms ELSE :now END
WHERE schedule_key {among(keys, text)}
