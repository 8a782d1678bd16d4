-- How many triggers of a schedule wait, counted up to a limit. All that are open are in an index of their own.
SELECT count(*) FROM (
    SELECT 1 FROM run INDEXED BY run_open
    WHERE schedule_id = :id AND status IN ('pending', 'retrying', 'starting', 'running') AND status <> 'running'
        AND origin LIKE 'trigger:%'
    LIMIT :limit
)
