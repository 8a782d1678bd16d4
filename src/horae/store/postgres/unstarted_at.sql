-- The latest range of slots of a schedule that did not run, of those that a nominal time lies in.
SELECT schedule_id, generation, first, last, count, status, reason, decided_at, number
FROM unstarted_range
WHERE schedule_id = :id AND first <= :nominal AND last >= :nominal
ORDER BY number DESC
LIMIT 1
