-- Register a node, or update what it can run. Without a lease it has no deadline.
INSERT INTO node ({inserted(node)}, deadline_ms) VALUES ({parameters(node)}, {time_ms} + :lease_ms)
ON CONFLICT (epoch) DO UPDATE SET actions = excluded.actions
