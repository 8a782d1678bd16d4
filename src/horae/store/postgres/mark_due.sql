-- Schedules that something happened to: look at them at once.
UPDATE due SET next_at = least(coalesce(next_at, :now::bigint), :now) WHERE schedule_id = ANY (:ids::text[])
