-- The number for a schedule of this id that is created now.
INSERT INTO incarnation (schedule_id, latest) VALUES (:id, 1)
ON CONFLICT (schedule_id) DO UPDATE SET latest = latest + 1
RETURNING latest
