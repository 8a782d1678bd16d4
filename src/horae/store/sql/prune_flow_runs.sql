-- Delete the oldest ended runs that are past the retention of their flows, by age or by number; a few at a time.
-- The one whose failure is not resolved stays.
{delete_each(flow_run, number)} (
    SELECT r.number FROM flow_run AS r
    WHERE r.flow_id = new.flow_id AND r.ended_at_ms IS NOT NULL
        AND (r.ended_at_ms < new.before OR r.number <= (
            SELECT number FROM flow_run WHERE flow_id = new.flow_id ORDER BY number DESC LIMIT 1 OFFSET new.count
        ))
        AND NOT EXISTS (
            SELECT 1 FROM flow_lane
            WHERE flow_lane.flow_id = r.flow_id AND (flow_lane.run_id = r.id OR {position}(coalesce(trouble, ''), r.id) > 0)
        )
    ORDER BY r.number LIMIT new.max_rows
) {deleted(flow_run, number)}
