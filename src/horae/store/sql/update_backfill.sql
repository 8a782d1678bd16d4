-- Update the progress of open backfills.
UPDATE backfill SET cursor_ms = new.cursor_ms, made = new.made, status = new.status, ended_at_ms = new.ended_at_ms
{from_new}
WHERE backfill.id = new.id AND backfill.status = 'open'
