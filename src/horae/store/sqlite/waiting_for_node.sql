-- The schedules with runs that have waited for a node since before a moment.
SELECT DISTINCT schedule_id, action FROM run INDEXED BY run_unclaimed
WHERE status = 'starting' AND start_at < :before
LIMIT :limit
