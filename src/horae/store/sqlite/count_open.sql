-- How many runs have not ended, by status, counted up to a limit.
SELECT status, count(*) FROM (
    SELECT status FROM run INDEXED BY run_open WHERE status IN ('pending', 'retrying', 'starting', 'running') LIMIT :limit
) GROUP BY status
