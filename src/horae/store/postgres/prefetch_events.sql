-- The first pending events of each of some topics.
SELECT {columns(flow_event)}
FROM unnest(:ids::text[]::bigint[], :topics::text[]) AS pairs (wanted_id, wanted_topic)
CROSS JOIN LATERAL (
    SELECT * FROM flow_event
    WHERE flow_id = wanted_id AND topic = wanted_topic AND status = 'pending'
    ORDER BY number LIMIT :limit
) AS flow_event
