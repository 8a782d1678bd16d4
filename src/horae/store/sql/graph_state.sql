-- What is kept of a graph's state while it runs.
SELECT key, value FROM graph_state WHERE run_id = :run_id
