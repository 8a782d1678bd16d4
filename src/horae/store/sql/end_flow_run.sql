-- Record how active runs ended.
UPDATE flow_run SET phase = new.phase, status = new.status, prepared = coalesce(new.prepared, flow_run.prepared),
    mutation = coalesce(new.mutation, flow_run.mutation), error = new.error, failure_kind = new.failure_kind, events = new.events,
    published = new.published, title = new.title, updated_at_ms = new.updated_at_ms, ended_at_ms = new.ended_at_ms
{from_new}
WHERE flow_run.id = new.run_id AND flow_run.status = 'active'
