-- Write lines that handlers of flows logged, under their claims. A stale claim writes nothing, and what was written before stays.
INSERT INTO flow_log ({inserted(flow_log)})
SELECT {new(flow_log)}
{from_new}
WHERE EXISTS (
    SELECT 1 FROM flow_run JOIN flow_lane ON flow_lane.flow_id = flow_run.flow_id
    WHERE flow_run.id = new.run_id AND coalesce(flow_lane.run_id, '') = new.run_id AND flow_lane.epoch = new.epoch
        AND flow_lane.attempt = new.attempt
)
ON CONFLICT DO NOTHING
