-- Add to the counts of slots that did not start, by reason.
INSERT INTO unstarted_count (schedule_key, reason, count)
{values} new.schedule_key, new.reason, new.count {end_values}
ON CONFLICT (schedule_key, reason) DO UPDATE SET count = unstarted_count.count + excluded.count
