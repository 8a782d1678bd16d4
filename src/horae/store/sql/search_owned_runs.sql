-- The same for the runs of the schedules that one owner has.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)}
        AND (schedule_id, generation) IN (SELECT id, generation FROM schedule WHERE id = schedule_id AND owner = :owner)
    THEN {size(run)} END
FROM run
WHERE owner = :owner AND owner <> '' AND number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
