-- Make schedules due that have a run waiting, or that have no time to be due at.
UPDATE due SET next_at_ms = CASE WHEN next_at_ms < :now THEN next_at_ms ELSE :now END
WHERE schedule_key {among(keys, text)}
    AND (next_at_ms IS NULL OR EXISTS (
        SELECT 1 FROM run
        WHERE run.schedule_key = due.schedule_key AND {open(status)} AND status IN ('pending', 'retrying')
    ))
