-- How many runs have not ended, by status, counted up to a limit.
SELECT status, count(*) FROM (
    SELECT status FROM run WHERE status IN ('pending', 'starting', 'running') LIMIT :limit
) AS counted GROUP BY status
