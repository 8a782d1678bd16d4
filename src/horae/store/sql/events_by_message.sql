-- Some events of a topic by their message ids.
SELECT {columns(flow_event)} FROM flow_event
WHERE flow_id = :flow_id AND topic = :topic AND message_id {among(message_ids, text)}
ORDER BY number
