-- The number for a schedule of this id that is created now.
INSERT INTO incarnation AS i (schedule_id, latest) VALUES ($1, 1)
ON CONFLICT (schedule_id) DO UPDATE SET latest = i.latest + 1
RETURNING latest
