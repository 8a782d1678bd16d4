-- A page of all schedules.
SELECT s.id, s.incarnation, s.spec, s.action, s.policies, s.state, s.token, d.cursor, s.created_at, s.updated_at
FROM schedule AS s JOIN due AS d ON d.schedule_id = s.id
WHERE s.id > $1
ORDER BY s.id
LIMIT $2
