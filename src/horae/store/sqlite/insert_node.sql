-- A node begins to live, or says anew what it can run.
INSERT INTO node (epoch, name, actions, tzdata, started_at) VALUES (:epoch, :name, :actions, :tzdata, :started_at)
ON CONFLICT (epoch) DO UPDATE SET actions = excluded.actions
