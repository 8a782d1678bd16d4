-- The latest backfills of a schedule, newest first; those before one, by its number.
SELECT {columns(backfill)} FROM backfill
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
