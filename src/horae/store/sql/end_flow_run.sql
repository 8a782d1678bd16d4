-- Record how active runs ended. A plan that is made while the tables are small must look up keys: a condition that stands in a
-- CASE with a new value tempts no planner to read all active runs instead.
UPDATE flow_run SET phase = new.phase, status = new.status, prepared = coalesce(new.prepared, flow_run.prepared),
    mutation = coalesce(new.mutation, flow_run.mutation), error = new.error, failure_kind = new.failure_kind, events = new.events,
    published = new.published, title = new.title, updated_at_ms = new.updated_at_ms, ended_at_ms = new.ended_at_ms
{from_new}
WHERE flow_run.id = new.run_id AND CASE WHEN flow_run.status = 'active' THEN new.run_id = flow_run.id ELSE FALSE END
