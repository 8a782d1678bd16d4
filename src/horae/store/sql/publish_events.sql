-- Publish events. One whose message id is there gets the new payload while it is pending, and nothing else changes.
INSERT INTO flow_event ({inserted(flow_event)})
SELECT {new(flow_event)}
{from_new}
WHERE TRUE
ON CONFLICT (flow_id, topic, message_id) DO UPDATE
SET payload = excluded.payload, caused = CASE WHEN flow_event.caused THEN flow_event.caused ELSE excluded.caused END
WHERE flow_event.status = 'pending'
