-- The conditions of a filter on schedules.
    AND (:prefix IS NULL OR substr(id, 1, length(:prefix)) = :prefix)
    AND (:action IS NULL OR coalesce(
        json_extract({json(action)}, '$.kind') || ':' || json_extract({json(action)}, '$.name'),
        json_extract({json(action)}, '$.kind'), json_extract({json(action)}, '$.name')
    ) = :action)
    AND (:tag IS NULL OR {has(tags, tag)})
    AND (:paused IS NULL OR coalesce(json_extract({json(state)}, '$.paused'), 0) = :paused)
    AND (:completed IS NULL OR (json_extract({json(state)}, '$.completed_at_ms') IS NOT NULL) = :completed)
    AND (:attention IS NULL OR (coalesce(json_extract({json(state)}, '$.attention'), '') <> '') = :attention)
    AND (:managed_by IS NULL OR managed_by = :managed_by)
    AND (:orphaned IS NULL OR coalesce(json_extract({json(state)}, '$.orphaned'), 0) = :orphaned)
    AND (:search_key IS NULL OR EXISTS (
        SELECT 1 FROM json_each({json(search_attributes)})
        WHERE key = :search_key
            AND CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(atom AS TEXT) END = :search_value))
    AND (:text IS NULL OR instr(lower(id), :text) > 0 OR instr(lower(description), :text) > 0 OR instr(lower(tags), :text) > 0
        OR instr(lower(coalesce(
            json_extract({json(action)}, '$.kind') || ':' || json_extract({json(action)}, '$.name'),
            json_extract({json(action)}, '$.kind'), json_extract({json(action)}, '$.name')
        )), :text) > 0
        OR instr(lower(json_extract({json(action)}, '$.input.workflow_id')), :text) > 0)
