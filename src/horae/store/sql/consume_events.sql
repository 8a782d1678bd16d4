-- Consume events that runs have reserved, or that are pending and that they take in the same transaction.
UPDATE flow_event SET status = 'consumed', run_id = new.run_id, ended_at_ms = new.ended_at_ms
{from_new}
WHERE flow_event.number = new.number
    AND (flow_event.status = 'pending' OR (flow_event.status = 'reserved' AND flow_event.run_id = new.run_id))
