-- A result for the next run.
INSERT INTO last (schedule_id, result) VALUES (:schedule_id, :result)
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
