-- The latest runs of a schedule with numbers below another, newest first.
SELECT {columns(run)} FROM run
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
