-- The numbers of the latest runs before one, when each was decided, and the size of those that a search finds.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)} THEN {size(run)} END
FROM run
WHERE number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
