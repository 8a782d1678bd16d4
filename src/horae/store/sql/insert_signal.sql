-- Tell the next decision of a flow that events were published in a topic.
INSERT INTO flow_signal ({inserted(flow_signal)})
{values} {new(flow_signal)} {end_values}
