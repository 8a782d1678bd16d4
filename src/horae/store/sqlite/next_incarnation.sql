-- The numbers for schedules that are created now.
INSERT INTO incarnation (schedule_id, latest) VALUES (:id, 1)
ON CONFLICT (schedule_id) DO UPDATE SET latest = latest + 1
