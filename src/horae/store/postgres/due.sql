-- The schedules that must be looked at, the longest overdue first; those that another node looks at are left to it.
-- With each comes the database's own time, so that a node whose clock is off does not act on what it read.
SELECT s.id, s.incarnation, s.spec, s.action, s.policies, s.state, s.token, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM due AS d JOIN schedule AS s ON s.id = d.schedule_id
WHERE d.next_at <= :now
ORDER BY d.next_at
LIMIT :limit
FOR UPDATE OF d SKIP LOCKED
