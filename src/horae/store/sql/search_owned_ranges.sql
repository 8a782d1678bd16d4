-- The same for the ranges of the schedules that one owner has.
SELECT {columns(unstarted_range)}, {include(ledger_filter)}
    AND (schedule_id, generation) IN (SELECT id, generation FROM schedule WHERE id = schedule_id AND owner = :owner)
FROM unstarted_range
WHERE owner = :owner AND owner <> '' AND (decided_at_ms, number) < (:before_ms, :before) AND decided_at_ms >= :since
ORDER BY decided_at_ms DESC, number DESC
LIMIT :limit
