-- A page of the schedules that a filter lets through; what is NULL in it does not matter.
SELECT s.id, s.incarnation, s.spec, s.action, s.policies, s.state, s.token, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id
FROM schedule AS s JOIN due AS d ON d.schedule_id = s.id
WHERE s.id > :after
    AND (:prefix IS NULL OR substr(s.id, 1, length(:prefix)) = :prefix)
    AND (:owner IS NULL OR s.owner = :owner)
    AND (:action IS NULL OR json_extract(s.action, '$.name') = :action)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = :tag))
    AND (:paused IS NULL OR coalesce(json_extract(s.state, '$.paused'), 0) = :paused)
    AND (:attention IS NULL OR (coalesce(json_extract(s.state, '$.attention'), '') <> '') = :attention)
ORDER BY s.id
LIMIT :limit
