-- The sizes of the latest backfills of a schedule, newest first; those before one.
SELECT octet_length(note) + coalesce(octet_length(input), 0)
FROM backfill
WHERE schedule_id = :id AND (:before::text IS NULL OR number < (SELECT number FROM backfill WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
