-- Extend the latest range of a schedule by a new one that continues it, with the same status and reason.
UPDATE unstarted_range SET end_ms = new.end_ms, count = unstarted_range.count + new.count, decided_at_ms = new.decided_at_ms
{from_new}
WHERE unstarted_range.number = (SELECT max(number) FROM unstarted_range AS r WHERE r.schedule_key = new.schedule_key)
    AND unstarted_range.generation = new.generation AND unstarted_range.end_ms = new.before_ms
    AND unstarted_range.status = new.status AND unstarted_range.reason = new.reason
