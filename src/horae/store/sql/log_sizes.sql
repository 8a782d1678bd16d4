-- How many bytes of text the same page has, row by row.
SELECT {size(attempt_log)} FROM attempt_log
WHERE run_id = :run_id AND (attempt, number) > (:attempt, :number) AND attempt <= :last
ORDER BY attempt, number
LIMIT :limit
