-- The runs that some nodes have claimed and not finished, oldest first.
SELECT {columns(run_without_input)} FROM run {index(run_open)}
WHERE {open(status)} AND status = 'running' AND epoch {among(epochs, bigint)}
ORDER BY number
LIMIT :limit
