-- Which schedules must be looked at, the longest overdue first; those that another node looks at are left to it.
-- What they are is read after they are locked: a row that was waited for is seen anew, one that it is joined to is not.
-- With each comes the database's own time, so that a node whose clock is off does not act on what it reads.
SELECT schedule_id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM due
WHERE next_at <= :now
ORDER BY next_at
LIMIT :limit
FOR UPDATE SKIP LOCKED
