-- The latest ranges of slots that did not run, newest first.
SELECT schedule_id, incarnation, first, last, count, status, reason, decided_at
FROM passed
WHERE schedule_id = :id
ORDER BY number DESC
LIMIT :limit
