-- The conditions of a filter on schedules.
    AND (:prefix::text IS NULL OR starts_with(id, :prefix))
    AND (:action::text IS NULL OR coalesce(
        (action::json ->> 'kind') || ':' || (action::json ->> 'name'), action::json ->> 'kind', action::json ->> 'name'
    ) = :action)
    AND (:tag::text IS NULL OR tags::jsonb ? :tag)
    AND (:paused::boolean IS NULL OR coalesce((state::json ->> 'paused')::boolean, FALSE) = :paused)
    AND (:completed::boolean IS NULL OR (state::json ->> 'completed_at' IS NOT NULL) = :completed)
    AND (:attention::boolean IS NULL OR (coalesce(state::json ->> 'attention', '') <> '') = :attention)
    AND (:search_key::text IS NULL OR search_attributes::jsonb ->> :search_key = :search_value::text)
