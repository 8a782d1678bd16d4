-- The lanes of the given flows, locked in the order of their ids.
SELECT {columns(flow_lane)} FROM flow_lane WHERE flow_id {among(ids, bigint)} ORDER BY flow_id
{update_lock}
