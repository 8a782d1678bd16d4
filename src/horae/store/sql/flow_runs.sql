-- A page of the runs of a flow, newest first.
SELECT {columns(flow_run)} FROM flow_run
WHERE flow_id = :flow_id AND number < :before AND (handler = :handler OR CAST(:handler AS TEXT) IS NULL)
ORDER BY number DESC
LIMIT :limit
