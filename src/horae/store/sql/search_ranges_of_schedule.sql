-- The same for the ranges of one schedule: only its latest one grows, so their numbers are in order.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE schedule_key = :schedule_key AND number < :before
ORDER BY number DESC
LIMIT :limit
