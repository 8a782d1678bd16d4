-- Schedules of which a run ended: look at those where something waits, or that nobody would look at again.
UPDATE due SET next_at = min(coalesce(next_at, :now), :now)
WHERE schedule_id IN (SELECT value FROM json_each(:ids))
    AND (next_at IS NULL OR EXISTS (
        SELECT 1 FROM run
        WHERE run.schedule_id = due.schedule_id AND status IN ('pending', 'retrying', 'starting', 'running')
            AND status IN ('pending', 'retrying')
    ))
