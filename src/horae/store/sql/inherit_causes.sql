-- Note that published events were caused by what caused the events of their run.
INSERT INTO flow_cause (input_number, event_number)
SELECT DISTINCT flow_cause.input_number, flow_event.number
FROM {also_new} flow_event, flow_cause
WHERE flow_event.flow_id = new.flow_id AND flow_event.topic = new.topic AND flow_event.message_id = new.message_id
    AND flow_cause.event_number = new.number
ON CONFLICT (input_number, event_number) DO NOTHING
