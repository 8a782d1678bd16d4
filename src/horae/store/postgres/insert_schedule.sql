-- Schedules that did not exist.
INSERT INTO schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at, owner, tags, memo,
    search_attributes, request_id)
SELECT *
FROM unnest(:id::text[], :incarnation::bigint[], :spec::text[], :action::text[], :policies::text[], :state::text[],
    :token::bigint[], :created_at::bigint[], :updated_at::bigint[], :owner::text[], :tags::text[], :memo::text[],
    :search_attributes::text[], :request_id::text[]) AS new (id, incarnation, spec, action, policies, state, token,
    created_at, updated_at, owner, tags, memo, search_attributes, request_id)
