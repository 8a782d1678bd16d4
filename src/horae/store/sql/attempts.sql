-- The attempts of a run that another one followed, in order.
SELECT {columns(attempt)} FROM attempt WHERE run_id = :id ORDER BY attempt
