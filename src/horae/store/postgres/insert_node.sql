-- Register a node, or update what it can run.
INSERT INTO node ({inserted(node)}, deadline)
VALUES ({parameters(node)}, clock_timestamp() + make_interval(secs => :lease))
ON CONFLICT (epoch) DO UPDATE SET actions = excluded.actions
