-- Schedules that were edited.
UPDATE schedule SET spec = new.spec, action = new.action, policies = new.policies, state = new.state, token =
    new.token, updated_at = new.updated_at, owner = new.owner, tags = new.tags
FROM unnest(:id::text[], :spec::text[], :action::text[], :policies::text[], :state::text[], :token::bigint[],
    :updated_at::bigint[], :owner::text[], :tags::text[]) AS new (id, spec, action, policies, state, token,
    updated_at, owner, tags)
WHERE schedule.id = new.id
