-- Drop parts of a graph's state.
DELETE FROM graph_state WHERE run_id = :run_id AND key {among(keys, text)} RETURNING key
