-- The progress of open backfills.
UPDATE backfill SET cursor = new.cursor, made = new.made, status = new.status, ended_at = new.ended_at
{from_new}
WHERE backfill.id = new.id AND backfill.status = 'open'
