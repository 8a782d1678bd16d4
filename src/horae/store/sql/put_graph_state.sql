-- Keep a part of a graph's state.
INSERT INTO graph_state (run_id, key, value, saved_at_ms)
{values} new.run_id, new.key, new.value, new.saved_at_ms {end_values}
ON CONFLICT (run_id, key) DO UPDATE SET value = excluded.value, saved_at_ms = excluded.saved_at_ms
