-- Hand what a run has reserved over to the run that continues it. (CASE: as in end_flow_run.)
UPDATE flow_event SET run_id = new.run_id
{from_new}
WHERE flow_event.number = new.number
    AND CASE WHEN flow_event.status = 'reserved' THEN flow_event.run_id = new.retry_of ELSE FALSE END
