-- The schedules that must be looked at, the longest overdue first; those that another node looks at are left to it.
SELECT s.id, s.incarnation, s.spec, s.action, s.policies, s.state, s.token, d.cursor, s.created_at, s.updated_at
FROM due AS d JOIN schedule AS s ON s.id = d.schedule_id
WHERE d.next_at <= $1
ORDER BY d.next_at
LIMIT $2
FOR UPDATE OF d SKIP LOCKED
