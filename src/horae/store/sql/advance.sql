-- Update schedules after a decision: their cursors, when they are due, when they were attempted, how many runs they started.
UPDATE due SET cursor_ms = new.cursor_ms, next_at_ms = new.next_at_ms, attempted_at_ms = coalesce(new.attempted_at_ms, due.attempted_at_ms),
    started = due.started + new.started
{from_new}
WHERE due.schedule_key = new.schedule_key
