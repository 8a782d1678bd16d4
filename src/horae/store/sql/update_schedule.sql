-- Update edited schedules.
UPDATE schedule SET {updated(schedule)}
{from_new}
WHERE schedule.key = new.key
