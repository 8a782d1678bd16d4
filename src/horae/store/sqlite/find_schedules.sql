-- A page of the schedules that a filter lets through.
SELECT s.id, s.generation, s.spec, s.action, s.policies, s.state, s.version, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id
FROM schedule AS s JOIN due AS d ON d.schedule_id = s.id
WHERE s.id > :after
-- include filter
ORDER BY s.id
LIMIT :limit
