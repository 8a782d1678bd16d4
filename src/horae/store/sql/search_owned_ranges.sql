-- Like search_ranges, for the schedules of one owner.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
FROM unstarted_range
WHERE owner = :owner AND owner <> '' AND (decided_at_ms, number) < (:before_ms, :before) AND decided_at_ms >= :since
ORDER BY decided_at_ms DESC, number DESC
LIMIT :limit
