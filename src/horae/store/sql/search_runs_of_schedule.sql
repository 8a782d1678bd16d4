-- The same for the runs of one schedule, since a generation of it.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)} THEN {size(run)} END
FROM run
WHERE schedule_id = :schedule_id AND generation >= :generation AND number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
