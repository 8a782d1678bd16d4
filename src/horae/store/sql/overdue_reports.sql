-- Runs whose external worker should have reported, the longest overdue first.
SELECT {columns(run)}, token_hash, report_by FROM run
WHERE status = 'running' AND report_by IS NOT NULL AND report_by <= :now
ORDER BY report_by
LIMIT :limit
