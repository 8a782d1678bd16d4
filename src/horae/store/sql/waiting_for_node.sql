-- Schedules and actions whose runs have waited for a node since before a moment.
SELECT DISTINCT schedule_key, action FROM run {index(run_unclaimed)}
WHERE status = 'starting' AND start_at_ms < :before
LIMIT :limit
