-- The latest ranges of a schedule's slots that did not start, newest first; those before one.
SELECT {columns(unstarted_range)} FROM unstarted_range
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
