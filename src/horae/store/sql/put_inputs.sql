-- Register inputs; one that is registered gets the new title.
INSERT INTO flow_input ({inserted(flow_input)})
{values} {new(flow_input)} {end_values}
ON CONFLICT (flow_id, source, type, input_id) DO UPDATE SET title = excluded.title
