-- Pending events of a topic, oldest first.
SELECT {columns(flow_event)} FROM flow_event
WHERE flow_id = :flow_id AND topic = :topic AND status = 'pending'
ORDER BY number
LIMIT :limit
