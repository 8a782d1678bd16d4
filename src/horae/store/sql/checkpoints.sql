-- What attempts of some runs saved, in the order in which it was saved.
SELECT {columns(checkpoint)} FROM checkpoint
WHERE run_id {among(ids, text)}
ORDER BY run_id, saved_at_ms, key
