-- The numbers and sizes of the latest runs of a schedule, newest first; those before one, by its number.
SELECT number, {size(run)} FROM run
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
