-- The usage of the given runs of graphs.
SELECT {columns(usage_record)} FROM usage_record WHERE run_id {among(ids, text)} ORDER BY run_id, attempt, unit
