-- Update schedules after a decision: their cursors, when they are due, when they were attempted, how many runs they started.
UPDATE due SET cursor_ms = new.cursor_ms, next_at = new.next_at, attempted_at = coalesce(new.attempted_at, due.attempted_at),
    started = due.started + new.started
{from_new}
WHERE due.schedule_id = new.schedule_id
