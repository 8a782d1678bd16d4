-- The events of an input that are pending or reserved, and the run that reserved each.
SELECT flow_event.number, flow_event.run_id
FROM flow_cause
JOIN flow_event ON flow_event.number = flow_cause.event_number
WHERE flow_cause.input_number = :number AND flow_event.status IN ('pending', 'reserved')
ORDER BY flow_event.number
