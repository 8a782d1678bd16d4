-- The first pending events of each of some topics.
SELECT {columns(flow_event)} FROM json_each(:pairs) AS pairs
JOIN flow_event ON number IN (
    SELECT e.number FROM flow_event AS e
    WHERE e.flow_id = json_extract(pairs.value, '$[0]') AND e.topic = json_extract(pairs.value, '$[1]') AND e.status = 'pending'
    ORDER BY e.number LIMIT :limit
)
