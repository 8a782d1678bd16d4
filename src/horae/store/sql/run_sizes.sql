-- The sizes of the latest runs of a schedule, newest first; those before one.
SELECT {size(run)} FROM run
WHERE schedule_id = :id AND (CAST(:before AS TEXT) IS NULL OR number < (SELECT number FROM run WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
