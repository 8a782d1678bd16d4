-- How many runs are open, by status, counted up to a limit.
SELECT status, count(*) FROM (
    SELECT status FROM run {index(run_open)} WHERE {open(status)} LIMIT :limit
) AS counted
GROUP BY status
