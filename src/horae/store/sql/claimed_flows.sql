-- The flows that some nodes work on.
SELECT {columns(flow_lane)} FROM flow_lane {index(flow_lane_claimed)}
WHERE run_id IS NOT NULL AND epoch {among(epochs, bigint)}
LIMIT :limit
