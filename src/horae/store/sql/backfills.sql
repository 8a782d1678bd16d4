-- The latest backfills of a schedule with numbers below another, newest first.
SELECT {columns(backfill)} FROM backfill
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
