-- Skip events that are not consumed. (CASE: as in end_flow_run.)
UPDATE flow_event SET status = 'skipped', ended_at_ms = new.ended_at_ms
{from_new}
WHERE flow_event.number = new.number
    AND CASE WHEN flow_event.status IN ('pending', 'reserved') THEN new.number = flow_event.number ELSE FALSE END
