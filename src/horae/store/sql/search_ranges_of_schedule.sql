-- The same for the ranges of one schedule, since a generation of it; only its latest one grows, so their numbers are in order.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE schedule_id = :schedule_id AND generation >= :generation AND number < :before
ORDER BY number DESC
LIMIT :limit
