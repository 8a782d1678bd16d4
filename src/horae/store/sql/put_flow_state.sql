-- Store the state that a handler passes to its next run.
INSERT INTO flow_state ({inserted(flow_state)})
{values} {new(flow_state)} {end_values}
ON CONFLICT (flow_id, handler) DO UPDATE SET state = excluded.state
