-- Write lines that attempts logged, under their claims. A stale claim writes nothing, and what was written before stays.
-- The `coalesce` makes the server find the runs by their ids, instead of scanning all open runs.
INSERT INTO attempt_log ({inserted(attempt_log)})
SELECT {new(attempt_log)}
{from_new}
WHERE EXISTS (
    SELECT 1 FROM run
    WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt
        AND coalesce(run.status, '') = 'running'
)
ON CONFLICT DO NOTHING
