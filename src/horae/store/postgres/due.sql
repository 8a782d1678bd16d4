-- Lock the schedules that are due, the longest overdue first, but for those that another node has locked.
-- A later statement reads them: after waiting for a lock, the server sees the locked row anew, but not rows joined to it.
-- The database's own time comes with each, so that a node whose clock is off does not act on what it reads.
SELECT schedule_key, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM due
WHERE next_at_ms <= :now
ORDER BY next_at_ms
LIMIT :limit
FOR UPDATE SKIP LOCKED
