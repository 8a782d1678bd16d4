-- Like search_ranges, for one schedule: only its latest range grows, so the numbers of its ranges are in order.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE schedule_key = :schedule_key AND number < :before
ORDER BY number DESC
LIMIT :limit
