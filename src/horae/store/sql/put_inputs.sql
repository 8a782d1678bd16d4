-- Register inputs; one that is registered gets the new title.
INSERT INTO flow_input ({inserted(flow_input)})
SELECT {new(flow_input)}
{from_new}
WHERE TRUE
ON CONFLICT (flow_id, source, type, input_id) DO UPDATE SET title = excluded.title
