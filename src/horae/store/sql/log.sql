-- A page of the log of a run: what follows a line, by its attempt and number.
SELECT {columns(attempt_log)} FROM attempt_log
WHERE run_id = :run_id AND (attempt, number) > (:attempt, :number) AND attempt <= :last
ORDER BY attempt, number
LIMIT :limit
