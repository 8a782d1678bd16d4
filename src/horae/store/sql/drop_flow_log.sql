-- Delete lines of a handler, because later ones took their place, under its claim.
DELETE FROM flow_log
WHERE run_id = :run_id AND attempt = :attempt AND number {among(numbers, bigint)} AND EXISTS (
    SELECT 1 FROM flow_run JOIN flow_lane ON flow_lane.flow_id = flow_run.flow_id
    WHERE flow_run.id = :run_id AND coalesce(flow_lane.run_id, '') = :run_id AND flow_lane.epoch = :epoch
        AND flow_lane.attempt = :attempt
)
