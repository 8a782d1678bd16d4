-- Some more slots of schedules that did not start, for one reason each.
INSERT INTO unstarted_count (schedule_id, reason, count)
SELECT * FROM unnest(:schedule_id::text[], :reason::text[], :count::bigint[]) AS new (schedule_id, reason, count)
ON CONFLICT (schedule_id, reason) DO UPDATE SET count = unstarted_count.count + excluded.count
