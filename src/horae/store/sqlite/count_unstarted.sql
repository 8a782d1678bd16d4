-- Some more slots of a schedule that did not start, for one reason.
INSERT INTO unstarted_count (schedule_id, reason, count)
VALUES (:schedule_id, :reason, :count)
ON CONFLICT (schedule_id, reason) DO UPDATE SET count = count + excluded.count
