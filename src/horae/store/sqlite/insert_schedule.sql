-- A schedule that did not exist.
INSERT INTO schedule (id, generation, spec, action, policies, state, version, created_at, updated_at, owner, tags, memo,
    search_attributes, request_id)
VALUES (:id, :generation, :spec, :action, :policies, :state, :version, :created_at, :updated_at, :owner, :tags, :memo,
    :search_attributes, :request_id)
