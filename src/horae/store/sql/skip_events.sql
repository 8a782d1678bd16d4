-- Skip events that are not consumed.
UPDATE flow_event SET status = 'skipped', ended_at_ms = new.ended_at_ms
{from_new}
WHERE flow_event.number = new.number AND flow_event.status IN ('pending', 'reserved')
