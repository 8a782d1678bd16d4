-- A page of the events of a flow, newest first, by topic and status.
SELECT {columns(flow_event)} FROM flow_event
WHERE flow_id = :flow_id AND number < :before AND (topic = :topic OR CAST(:topic AS TEXT) IS NULL) AND status {among(statuses, text)}
ORDER BY number DESC
LIMIT :limit
