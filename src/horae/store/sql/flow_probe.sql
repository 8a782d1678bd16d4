-- When the next flow is due that this node can run, and whether events were published from outside.
SELECT
    (SELECT next_at_ms FROM flow_lane
     WHERE next_at_ms IS NOT NULL AND revision {among(revisions, text)} ORDER BY next_at_ms LIMIT 1),
    EXISTS (SELECT 1 FROM flow_signal)
