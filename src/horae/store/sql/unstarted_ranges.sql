-- The latest unstarted ranges of a schedule with numbers below another, newest first.
SELECT {columns(unstarted_range)} FROM unstarted_range
WHERE schedule_key = :key AND number < CAST(:before AS BIGINT)
ORDER BY number DESC
LIMIT :limit
