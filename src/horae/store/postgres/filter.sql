-- The conditions of a filter on schedules.
    AND (:prefix::text IS NULL OR starts_with(id, :prefix))
    AND (:action::text IS NULL OR coalesce(
        ({json(action)} ->> 'kind') || ':' || ({json(action)} ->> 'name'), {json(action)} ->> 'kind', {json(action)} ->> 'name'
    ) = :action)
    AND (:tag::text IS NULL OR {has(tags, tag)})
    AND (:paused::boolean IS NULL OR coalesce({json(state)} ->> 'paused', 'false') = :paused::text)
    AND (:completed::boolean IS NULL OR ({json(state)} ->> 'completed_at_ms' IS NOT NULL) = :completed)
    AND (:attention::boolean IS NULL OR (coalesce({json(state)} ->> 'attention', '') <> '') = :attention)
    AND (:managed_by::text IS NULL OR managed_by = :managed_by)
    AND (:orphaned::boolean IS NULL OR coalesce({json(state)} ->> 'orphaned', 'false') = :orphaned::text)
    AND (:search_key::text IS NULL OR {json(search_attributes)}::jsonb ->> :search_key = :search_value::text)
    AND (:text::text IS NULL OR strpos(lower(id), :text) > 0 OR strpos(lower(description), :text) > 0 OR strpos(lower(tags), :text) > 0
        OR strpos(lower(coalesce(
            ({json(action)} ->> 'kind') || ':' || ({json(action)} ->> 'name'), {json(action)} ->> 'kind', {json(action)} ->> 'name'
        )), :text) > 0
        OR strpos(lower({json(action)} -> 'input' ->> 'workflow_id'), :text) > 0)
