-- A schedule that was edited.
UPDATE schedule SET spec = :spec, action = :action, policies = :policies, state = :state, token = :token,
    updated_at = :updated_at, owner = :owner, tags = :tags
WHERE id = :id
