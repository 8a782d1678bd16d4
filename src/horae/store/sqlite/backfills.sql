-- The latest backfills of a schedule, newest first; those before one.
SELECT id, schedule_id, generation, first, last, overlap, cursor, total, made, status, created_at, ended_at, author,
    note, input
FROM backfill
WHERE schedule_id = :id AND (:before IS NULL OR number < (SELECT number FROM backfill WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
