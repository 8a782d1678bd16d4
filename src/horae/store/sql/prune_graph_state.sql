-- Delete the oldest states of graphs from before a moment.
DELETE FROM graph_state WHERE (run_id, key) IN (
    SELECT run_id, key FROM graph_state WHERE saved_at_ms < :before_ms ORDER BY saved_at_ms LIMIT :limit
)
RETURNING key
