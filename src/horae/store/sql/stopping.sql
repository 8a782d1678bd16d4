-- The runs of a node that were asked to stop.
SELECT {columns(run)} FROM run WHERE epoch = :epoch AND status = 'running' AND stop <> ''
