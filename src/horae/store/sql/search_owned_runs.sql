-- Like search_runs, for the schedules of one owner.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)} THEN {size(run)} END
FROM run
WHERE owner = :owner AND owner <> '' AND number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
