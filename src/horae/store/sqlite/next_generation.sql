-- The numbers for schedules that are created now.
INSERT INTO generation (schedule_id, latest)
SELECT value, 1 FROM json_each(:ids) WHERE true
ON CONFLICT (schedule_id) DO UPDATE SET latest = latest + 1
RETURNING schedule_id, latest
