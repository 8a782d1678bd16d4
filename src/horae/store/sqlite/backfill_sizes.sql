-- The sizes of the latest backfills of a schedule, newest first; those before one.
SELECT length(CAST(note AS BLOB)) + coalesce(length(CAST(input AS BLOB)), 0)
FROM backfill
WHERE schedule_id = :id AND (:before IS NULL OR number < (SELECT number FROM backfill WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
