-- A backfill that went on, or ended.
UPDATE backfill SET cursor = :cursor, made = :made, status = :status, ended_at = :ended_at
WHERE id = :id AND status = 'open'
