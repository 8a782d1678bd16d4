-- The numbers for schedules that are created now.
INSERT INTO generation AS i (schedule_id, latest)
SELECT id, 1 FROM unnest(:ids::text[]) AS new (id) ORDER BY id
ON CONFLICT (schedule_id) DO UPDATE SET latest = i.latest + 1
RETURNING schedule_id, latest
