-- One backfill.
SELECT id, schedule_id, generation, first, last, overlap, cursor, total, made, status, created_at, ended_at, author,
    note, input
FROM backfill
WHERE id = :id
