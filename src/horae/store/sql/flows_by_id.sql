-- Some flows.
SELECT {columns(flow)} FROM flow WHERE flow_id {among(ids, bigint)}
