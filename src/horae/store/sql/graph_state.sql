-- The stored parts of a graph's state.
SELECT key, value FROM graph_state WHERE run_id = :run_id
