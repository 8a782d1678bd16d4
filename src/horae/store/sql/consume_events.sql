-- Consume events that runs have reserved, or that are pending and that they take in the same transaction. (CASE: as in end_flow_run.)
UPDATE flow_event SET status = 'consumed', run_id = new.run_id, ended_at_ms = :now
{from_new}
WHERE flow_event.number = new.number
    AND CASE flow_event.status WHEN 'pending' THEN TRUE WHEN 'reserved' THEN flow_event.run_id = new.run_id ELSE FALSE END
