-- Add to the counts of slots that did not start, by reason.
INSERT INTO unstarted_count (schedule_key, reason, count)
SELECT new.schedule_key, new.reason, new.count
{from_new}
WHERE TRUE
ON CONFLICT (schedule_key, reason) DO UPDATE SET count = unstarted_count.count + excluded.count
