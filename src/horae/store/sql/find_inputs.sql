-- A page of the inputs of a flow, newest first; each with how many of its events are pending or reserved.
SELECT {columns(flow_input)}, (
    SELECT count(*) FROM flow_cause JOIN flow_event ON flow_event.number = flow_cause.event_number
    WHERE flow_cause.input_number = flow_input.number AND flow_event.status IN ('pending', 'reserved')
) AS open_events
FROM flow_input
WHERE flow_id = :flow_id AND number < :before
ORDER BY number DESC
LIMIT :limit
