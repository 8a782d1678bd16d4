-- Create a schedule, or replace it.
INSERT INTO schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at)
VALUES (:id, :incarnation, :spec, :action, :policies, :state, :token, :created_at, :updated_at)
ON CONFLICT (id) DO UPDATE SET
    spec = excluded.spec, action = excluded.action, policies = excluded.policies, state = excluded.state,
    token = excluded.token, updated_at = excluded.updated_at
