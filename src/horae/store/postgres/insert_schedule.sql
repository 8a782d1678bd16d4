-- Schedules that did not exist.
COPY schedule (id, incarnation, spec, action, policies, state, token, created_at, updated_at, owner, tags, memo,
    search_attributes, request_id) FROM STDIN
