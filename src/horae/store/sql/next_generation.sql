-- The generations of schedules that are created now; locked until the transaction ends, in the order of their keys.
INSERT INTO generation (schedule_key, schedule_id, latest)
SELECT value, substr(value, {position}(value, :between) + 1), 1 FROM {elements(keys, text)} WHERE TRUE ORDER BY value
ON CONFLICT (schedule_key) DO UPDATE SET latest = generation.latest + 1
RETURNING schedule_key, latest
