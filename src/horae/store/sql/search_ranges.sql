-- The latest unstarted ranges before a place, and whether each matches a search.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE (decided_at_ms, number) < (:before_ms, :before) AND decided_at_ms >= :since
ORDER BY decided_at_ms DESC, number DESC
LIMIT :limit
