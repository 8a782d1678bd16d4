-- The latest runs of a flow that began up to a moment, and the first ones after it.
SELECT {columns(flow_run)} FROM (
    SELECT * FROM (
        SELECT * FROM flow_run WHERE flow_id = :flow_id AND created_at_ms <= :at_ms ORDER BY number DESC LIMIT 50
    ) AS earlier
    UNION ALL
    SELECT * FROM (
        SELECT * FROM flow_run WHERE flow_id = :flow_id AND created_at_ms > :at_ms ORDER BY number LIMIT 50
    ) AS later
) AS around
