-- The events of a topic with the given message ids.
SELECT {columns(flow_event)} FROM flow_event
WHERE flow_id = :flow_id AND topic = :topic AND message_id {among(message_ids, text)}
ORDER BY number
