-- The events of an input that are pending or reserved, with how far the run has got that reserved each.
SELECT flow_event.number, flow_event.status, flow_event.run_id, flow_run.phase, flow_run.mutation
FROM flow_cause
JOIN flow_event ON flow_event.number = flow_cause.event_number
LEFT JOIN flow_run ON flow_run.id = flow_event.run_id
WHERE flow_cause.input_number = :number AND flow_event.status IN ('pending', 'reserved')
ORDER BY flow_event.number
