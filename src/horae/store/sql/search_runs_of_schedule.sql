-- Like search_runs, for one schedule.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)} THEN {size(run)} END
FROM run
WHERE schedule_key = :schedule_key AND number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
