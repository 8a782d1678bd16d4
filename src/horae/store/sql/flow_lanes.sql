-- The lanes of the given flows, not locked.
SELECT {columns(flow_lane)} FROM flow_lane WHERE flow_id {among(ids, bigint)}
