-- Update states that decisions changed.
UPDATE schedule SET state = new.state
{from_new}
WHERE schedule.key = new.schedule_key
