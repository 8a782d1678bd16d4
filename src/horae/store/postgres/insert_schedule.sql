-- Schedules that did not exist.
COPY schedule (id, generation, spec, action, policies, state, version, created_at, updated_at, owner, tags, memo,
    search_attributes, request_id) FROM STDIN
