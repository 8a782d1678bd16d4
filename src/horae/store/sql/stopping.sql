-- The runs of a node that were asked to stop.
SELECT {columns(run_without_input)} FROM run WHERE epoch = :epoch AND status = 'running' AND stop <> ''
