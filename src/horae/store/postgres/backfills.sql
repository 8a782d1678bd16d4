-- The latest backfills of a schedule, newest first.
SELECT id, schedule_id, incarnation, first, last, overlap, cursor, total, made, status, created_at, ended_at, author,
    note, input
FROM backfill
WHERE schedule_id = :id
ORDER BY number DESC
LIMIT :limit
