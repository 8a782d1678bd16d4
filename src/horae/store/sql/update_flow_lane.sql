-- Write what was decided for flows.
UPDATE flow_lane SET {updated(flow_lane)}
{from_new}
WHERE flow_lane.flow_id = new.flow_id
