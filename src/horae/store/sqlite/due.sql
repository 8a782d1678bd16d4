-- The schedules that must be looked at, the longest overdue first.
SELECT s.id, s.generation, s.spec, s.action, s.policies, s.state, s.version, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id
FROM due AS d JOIN schedule AS s ON s.id = d.schedule_id
WHERE d.next_at <= :now
ORDER BY d.next_at
LIMIT :limit
