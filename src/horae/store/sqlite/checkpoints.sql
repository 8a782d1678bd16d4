-- What attempts of some runs saved, in the order in which it was saved.
SELECT run_id, key, value, attempt, saved_at FROM checkpoint
WHERE run_id IN (SELECT value FROM json_each(:run_ids))
ORDER BY run_id, saved_at, key
