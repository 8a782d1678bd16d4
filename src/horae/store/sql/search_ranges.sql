-- The latest ranges of slots that did not start, those before one, and whether a search finds them.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE (decided_at_ms, number) < (:before_ms, :before) AND decided_at_ms >= :since
ORDER BY decided_at_ms DESC, number DESC
LIMIT :limit
