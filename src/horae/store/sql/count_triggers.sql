-- How many triggers and reruns of a schedule wait, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM run {index(run_open)}
    WHERE schedule_key = :key AND {open(status)} AND status <> 'running'
        AND (origin LIKE 'trigger:%' OR origin LIKE 'rerun:%')
    LIMIT :limit
) AS counted
