-- A schedule that was edited.
UPDATE schedule SET spec = :spec, action = :action, policies = :policies, state = :state, version = :version,
    updated_at = :updated_at, owner = :owner, tags = :tags, memo = :memo, search_attributes = :search_attributes,
    request_id = :request_id
WHERE id = :id
