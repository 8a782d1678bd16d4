-- The latest range of a schedule that a nominal time lies in.
SELECT {columns(unstarted_range)} FROM unstarted_range
WHERE schedule_key = :key AND start_ms <= :nominal_ms AND end_ms >= :nominal_ms
ORDER BY number DESC
LIMIT 1
