-- How many automatic starts of a schedule wait, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM run {index(run_open)}
    WHERE schedule_key = :key AND {open(status)} AND status = 'pending'
        AND origin LIKE 'automatic%'
    LIMIT :limit
) AS counted
