-- How many schedules are due, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM due WHERE next_at_ms <= :now LIMIT :limit) AS counted
