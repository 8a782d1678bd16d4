-- Reserve pending events for runs; those that a run has reserved already stay so.
UPDATE flow_event SET status = 'reserved', run_id = new.run_id
{from_new}
WHERE flow_event.number = new.number
    AND (flow_event.status = 'pending' OR (flow_event.status = 'reserved' AND flow_event.run_id = new.run_id))
