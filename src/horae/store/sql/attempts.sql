-- The latest attempts of a run that did not succeed, in order.
SELECT * FROM (
    SELECT {columns(attempt)} FROM attempt WHERE run_id = :id ORDER BY attempt DESC LIMIT :limit
) AS latest
ORDER BY attempt
