-- Update the cursors of edited schedules, and when they are due.
UPDATE due SET cursor_ms = new.cursor_ms, next_at_ms = new.next_at_ms
{from_new}
WHERE due.schedule_key = new.schedule_key
