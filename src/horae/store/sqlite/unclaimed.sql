-- The schedules of runs that were released and wait for a node that can run them, the longest waiting first.
SELECT s.id, s.generation, s.spec, s.action, s.policies, s.state, s.version, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id
FROM due AS d JOIN schedule AS s ON s.id = d.schedule_id
WHERE d.schedule_id IN (
    SELECT schedule_id FROM run
    WHERE status = 'starting' AND action IN (SELECT value FROM json_each(:actions))
    ORDER BY number LIMIT :limit
)
