-- Schedules that something happened to: look at them at once.
UPDATE due SET next_at = min(coalesce(next_at, :now), :now)
WHERE schedule_id IN (SELECT value FROM json_each(:ids))
