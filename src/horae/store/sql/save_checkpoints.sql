-- Save values under the claims of attempts; a stale claim saves nothing.
-- The runs are locked, so that no other node can take one over between the check of its claim and the commit.
-- The `coalesce` makes the server find the runs by their ids, instead of scanning all open runs.
INSERT INTO checkpoint ({inserted(checkpoint)})
SELECT {new(checkpoint)} FROM {also_new} run
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
{share_lock(run)}
ON CONFLICT (run_id, key) DO UPDATE SET {excluded(checkpoint)}
