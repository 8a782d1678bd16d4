-- Publish events. One whose message id is there gets the new payload while it is pending, and nothing else changes.
INSERT INTO flow_event (flow_id, topic, message_id, payload, status, caused, created_at_ms)
{values} new.flow_id, new.topic, new.message_id, new.payload, 'pending', new.caused, CAST(:created_at_ms AS BIGINT) {end_values}
ON CONFLICT (flow_id, topic, message_id) DO UPDATE
SET payload = excluded.payload, caused = CASE WHEN flow_event.caused THEN flow_event.caused ELSE excluded.caused END
WHERE flow_event.status = 'pending'
