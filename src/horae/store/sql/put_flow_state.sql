-- Keep what a handler hands to its next run.
INSERT INTO flow_state ({inserted(flow_state)})
SELECT {new(flow_state)}
{from_new}
WHERE TRUE
ON CONFLICT (flow_id, handler) DO UPDATE SET state = excluded.state
