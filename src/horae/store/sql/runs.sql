-- The latest runs of a schedule, newest first; those before one.
SELECT {columns(run)} FROM run
WHERE schedule_id = :id AND (CAST(:before AS TEXT) IS NULL OR number < (SELECT number FROM run WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
