-- Note which inputs caused published events.
INSERT INTO flow_cause (input_number, event_number)
SELECT flow_input.number, flow_event.number
FROM {also_new} flow_input, flow_event
WHERE flow_input.flow_id = new.flow_id AND flow_input.source = new.source AND flow_input.type = new.type
    AND flow_input.input_id = new.input_id
    AND flow_event.flow_id = new.flow_id AND flow_event.topic = new.topic AND flow_event.message_id = new.message_id
ON CONFLICT (input_number, event_number) DO NOTHING
