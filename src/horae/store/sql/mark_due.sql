-- Make schedules due, unless they are already.
UPDATE due SET next_at = CASE WHEN next_at < :now THEN next_at ELSE :now END
WHERE schedule_id {among(ids, text)}
