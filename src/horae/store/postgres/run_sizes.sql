-- The sizes of the latest runs of a schedule, newest first; those before one.
SELECT octet_length(note) + coalesce(octet_length(input), 0) + coalesce(octet_length(result), 0) + coalesce(octet_length(failure), 0)
FROM run
WHERE schedule_id = :id AND (:before::text IS NULL OR number < (SELECT number FROM run WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
