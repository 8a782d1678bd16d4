-- Give up what runs have reserved. (CASE: as in end_flow_run.)
UPDATE flow_event SET status = 'pending', run_id = NULL
{from_new}
WHERE flow_event.number = new.number
    AND CASE WHEN flow_event.status = 'reserved' THEN flow_event.run_id = new.run_id ELSE FALSE END
