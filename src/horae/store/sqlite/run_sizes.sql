-- The sizes of the latest runs of a schedule, newest first; those before one.
SELECT length(CAST(note AS BLOB)) + coalesce(length(CAST(input AS BLOB)), 0) + coalesce(length(CAST(result AS BLOB)), 0) + coalesce(length(CAST(failure AS BLOB)), 0)
FROM run
WHERE schedule_id = :id AND (:before IS NULL OR number < (SELECT number FROM run WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
