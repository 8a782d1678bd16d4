-- Register a node, or update what it can run.
INSERT INTO node ({inserted(node)}) VALUES ({parameters(node)})
ON CONFLICT (epoch) DO UPDATE SET actions = excluded.actions
