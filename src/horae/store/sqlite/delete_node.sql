-- A node is gone, unless something of its is left to take over.
DELETE FROM node
WHERE epoch = :epoch AND NOT EXISTS (
    SELECT 1 FROM run
    WHERE status IN ('pending', 'retrying', 'starting', 'running') AND status = 'running' AND epoch = :epoch
)
