-- A failure for the next run, which gets the last result too.
INSERT INTO last (schedule_id, failure) VALUES (:schedule_id, :failure)
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
