-- A page of the ids of schedules that have no time to be due at.
SELECT schedule_id FROM due WHERE next_at_ms IS NULL AND schedule_id > :after ORDER BY schedule_id LIMIT :limit
