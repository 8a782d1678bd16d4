-- The oldest pending event of each of some topics of a flow.
SELECT topics.value, (
    SELECT created_at_ms FROM flow_event
    WHERE flow_id = :flow_id AND topic = topics.value AND status = 'pending' ORDER BY number LIMIT 1
)
FROM {elements_as(topics, text)}
