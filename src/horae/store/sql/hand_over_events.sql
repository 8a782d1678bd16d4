-- Hand what a run has reserved over to the run that continues it.
UPDATE flow_event SET run_id = new.run_id
{from_new}
WHERE flow_event.number = new.number AND flow_event.status = 'reserved' AND flow_event.run_id = new.retry_of
