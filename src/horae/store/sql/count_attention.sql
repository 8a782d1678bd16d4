-- How many flows wait for a person after a failure, counted up to a limit. One that is tried again by itself has a next time.
SELECT count(*) FROM (
    SELECT 1 FROM flow_lane
    WHERE trouble IS NOT NULL AND next_at_ms IS NULL AND run_id IS NULL AND NOT paused LIMIT :limit
) AS found
