-- The latest runs with numbers below another: number, when it was decided, and its size if it matches a search.
SELECT number, decided_at_ms, CASE WHEN {include(ledger_filter)} THEN {size(run)} END
FROM run
WHERE number < :before AND number >= :least
ORDER BY number DESC
LIMIT :limit
