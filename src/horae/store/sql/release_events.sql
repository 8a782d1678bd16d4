-- Give up what runs have reserved.
UPDATE flow_event SET status = 'pending', run_id = NULL
{from_new}
WHERE flow_event.number = new.number AND flow_event.status = 'reserved' AND flow_event.run_id = new.run_id
