-- Schedules that were edited.
UPDATE schedule SET spec = new.spec, action = new.action, policies = new.policies, state = new.state, version =
    new.version, updated_at = new.updated_at, owner = new.owner, tags = new.tags, memo = new.memo, search_attributes =
    new.search_attributes, request_id = new.request_id
FROM unnest(:id::text[], :spec::text[], :action::text[], :policies::text[], :state::text[], :version::bigint[],
    :updated_at::bigint[], :owner::text[], :tags::text[], :memo::text[], :search_attributes::text[],
    :request_id::text[]) AS new (id, spec, action, policies, state, version, updated_at, owner, tags, memo,
    search_attributes, request_id)
WHERE schedule.id = new.id
