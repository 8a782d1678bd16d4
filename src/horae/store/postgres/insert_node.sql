-- A node begins to live, or says anew what it can run.
INSERT INTO node (epoch, name, actions, tzdata, started_at, deadline)
VALUES (:epoch, :name, :actions, :tzdata, :started_at, clock_timestamp() + make_interval(secs => :lease))
ON CONFLICT (epoch) DO UPDATE SET actions = excluded.actions
