-- Move active runs forward, under the claims of their flows. A stale claim moves nothing. (CASE: as in end_flow_run.)
-- The row of the run is locked until the end; another node that takes it over waits, and sees the new phase.
UPDATE flow_run SET phase = new.phase, prepared = coalesce(new.prepared, flow_run.prepared),
    mutation = coalesce(new.mutation, flow_run.mutation), events = new.events, title = new.title, updated_at_ms = new.updated_at_ms
{from_new}
WHERE flow_run.id = new.run_id AND CASE WHEN flow_run.status = 'active' THEN EXISTS (
    SELECT 1 FROM flow_lane
    WHERE flow_lane.flow_id = flow_run.flow_id AND coalesce(flow_lane.run_id, '') = new.run_id AND flow_lane.epoch = new.epoch
) ELSE FALSE END
