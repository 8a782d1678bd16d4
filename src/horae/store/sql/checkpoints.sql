-- The checkpoints of the given runs, in the order in which they were saved.
SELECT {columns(checkpoint)} FROM checkpoint
WHERE run_id {among(ids, text)}
ORDER BY run_id, saved_at_ms, key
