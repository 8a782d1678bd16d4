-- The generations of schedules that are created now; locked until the transaction ends, in the order of their ids.
INSERT INTO generation (schedule_id, latest)
SELECT value, 1 FROM {elements(ids, text)} WHERE TRUE ORDER BY value
ON CONFLICT (schedule_id) DO UPDATE SET latest = generation.latest + 1
RETURNING schedule_id, latest
