-- All ids that schedules ever had, in order: those of deleted ones too, whose runs are still kept.
SELECT schedule_id FROM generation WHERE schedule_id > :after ORDER BY schedule_id LIMIT :limit
