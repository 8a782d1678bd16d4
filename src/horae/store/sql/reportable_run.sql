-- A run, with what a report on it must bring.
SELECT {columns(run)}, token_hash, report_by_ms FROM run WHERE id = :id
