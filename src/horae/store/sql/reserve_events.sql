-- Reserve pending events for runs; those that a run has reserved already stay so. (CASE: as in end_flow_run.)
UPDATE flow_event SET status = 'reserved', run_id = new.run_id
{from_new}
WHERE flow_event.number = new.number
    AND CASE flow_event.status WHEN 'pending' THEN TRUE WHEN 'reserved' THEN flow_event.run_id = new.run_id ELSE FALSE END
