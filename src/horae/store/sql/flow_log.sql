-- A page of what a run of a flow logged: what follows a line, by its attempt and number.
SELECT {columns(flow_log)} FROM flow_log
WHERE run_id = :run_id AND (attempt, number) > (:attempt, :number)
ORDER BY attempt, number
LIMIT :limit
