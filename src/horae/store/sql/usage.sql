-- What some runs of graphs used.
SELECT {columns(usage_record)} FROM usage_record WHERE run_id {among(ids, text)} ORDER BY run_id, attempt, unit
