-- How many automatic starts of a schedule wait, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM run
    WHERE schedule_id = :id AND status IN ('pending', 'starting', 'running') AND status = 'pending'
        AND attempt = 0 AND origin = 'automatic'
    LIMIT :limit
) AS counted
