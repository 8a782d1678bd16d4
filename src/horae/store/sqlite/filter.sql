-- The conditions of a filter on schedules.
    AND (:prefix IS NULL OR substr(id, 1, length(:prefix)) = :prefix)
    AND (:action IS NULL OR coalesce(
        json_extract(action, '$.kind') || ':' || json_extract(action, '$.name'),
        json_extract(action, '$.kind'), json_extract(action, '$.name')
    ) = :action)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = :tag))
    AND (:paused IS NULL OR coalesce(json_extract(state, '$.paused'), 0) = :paused)
    AND (:completed IS NULL OR (json_extract(state, '$.completed_at') IS NOT NULL) = :completed)
    AND (:attention IS NULL OR (coalesce(json_extract(state, '$.attention'), '') <> '') = :attention)
    AND (:search_key IS NULL OR EXISTS (
        SELECT 1 FROM json_each(search_attributes)
        WHERE key = :search_key
            AND CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(atom AS TEXT) END = :search_value))
