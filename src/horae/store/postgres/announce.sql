-- A node begins to live.
INSERT INTO node (epoch, deadline) VALUES ($1, clock_timestamp() + make_interval(secs => $2))
