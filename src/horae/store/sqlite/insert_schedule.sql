-- A schedule that did not exist.
INSERT INTO schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at, owner, tags, memo,
    search_attributes, request_id)
VALUES (:id, :incarnation, :spec, :action, :policies, :state, :token, :created_at, :updated_at, :owner, :tags, :memo,
    :search_attributes, :request_id)
