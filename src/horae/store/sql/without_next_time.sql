-- A page of the keys of schedules that have no time to be due at.
SELECT schedule_key FROM due WHERE next_at_ms IS NULL AND schedule_key > :after ORDER BY schedule_key LIMIT :limit
