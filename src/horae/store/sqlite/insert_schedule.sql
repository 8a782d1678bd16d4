-- A schedule that did not exist.
INSERT INTO schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at, owner, tags)
VALUES (:id, :incarnation, :spec, :action, :policies, :state, :token, :created_at, :updated_at, :owner, :tags)
