-- The latest ranges of slots that did not run, newest first; those before one.
SELECT schedule_id, generation, first, last, count, status, reason, decided_at, number
FROM unstarted_range
WHERE schedule_id = :id AND number < :before::bigint
ORDER BY number DESC
LIMIT :limit
