-- Create a schedule, or replace it.
INSERT INTO schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO UPDATE SET
    spec = excluded.spec, action = excluded.action, policies = excluded.policies, state = excluded.state,
    token = excluded.token, updated_at = excluded.updated_at
