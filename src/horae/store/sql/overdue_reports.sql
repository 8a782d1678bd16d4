-- Runs whose external worker should have reported, the longest overdue first.
SELECT {columns(run_without_input)}, token_hash, report_by_ms FROM run
WHERE status = 'running' AND report_by_ms IS NOT NULL AND report_by_ms <= :now
ORDER BY report_by_ms
LIMIT :limit
