-- How many events a flow has that are not consumed, by topic and status, counted up to a limit.
SELECT topic, status, count(*) FROM (
    SELECT topic, status FROM flow_event
    WHERE flow_id = :flow_id AND status IN ('pending', 'reserved') LIMIT :limit
) AS found GROUP BY topic, status
