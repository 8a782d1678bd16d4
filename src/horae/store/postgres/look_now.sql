-- Schedules that something happened to: look at them at once.
UPDATE due SET next_at = least(coalesce(next_at, $2), $2) WHERE schedule_id = ANY ($1::text[])
