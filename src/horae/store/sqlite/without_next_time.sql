-- Schedules that nobody will look at by themselves, in the order of their ids.
SELECT schedule_id FROM due WHERE next_at IS NULL AND schedule_id > :after ORDER BY schedule_id LIMIT :limit
