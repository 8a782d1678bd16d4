-- The flows with the given ids.
SELECT {columns(flow)} FROM flow WHERE flow_id {among(ids, bigint)}
