-- The oldest backfills of a schedule that ended before its retention; a few at a time.
DELETE FROM backfill WHERE number IN (
    SELECT number FROM backfill
    WHERE schedule_id = :schedule_id AND status <> 'open' AND ended_at < :before
    ORDER BY number LIMIT :most
)
