-- A page of the schedules that a filter lets through; what is NULL in it does not matter.
SELECT s.id, s.incarnation, s.spec, s.action, s.policies, s.state, s.token, d.cursor, s.created_at, s.updated_at,
    s.owner, s.tags, s.memo, s.search_attributes, s.request_id
FROM schedule AS s JOIN due AS d ON d.schedule_id = s.id
WHERE s.id > :after
    AND (:prefix::text IS NULL OR starts_with(s.id, :prefix))
    AND (:owner::text IS NULL OR s.owner = :owner)
    AND (:action::text IS NULL OR s.action::json ->> 'name' = :action)
    AND (:tag::text IS NULL OR s.tags::jsonb ? :tag)
    AND (:paused::boolean IS NULL OR coalesce((s.state::json ->> 'paused')::boolean, FALSE) = :paused)
    AND (:attention::boolean IS NULL OR (coalesce(s.state::json ->> 'attention', '') <> '') = :attention)
ORDER BY s.id
LIMIT :limit
