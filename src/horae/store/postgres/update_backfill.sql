-- Backfills that went on, or ended.
UPDATE backfill SET cursor = new.cursor, made = new.made, status = new.status, ended_at = new.ended_at
FROM unnest(:id::text[], :cursor::bigint[], :made::bigint[], :status::text[], :ended_at::bigint[]) AS new (id, cursor,
    made, status, ended_at)
WHERE backfill.id = new.id AND backfill.status = 'open'
