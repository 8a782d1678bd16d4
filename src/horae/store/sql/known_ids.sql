-- A page of all ids that schedules ever had: the ledger of deleted ones is kept too.
SELECT schedule_id FROM generation WHERE schedule_id > :after ORDER BY schedule_id LIMIT :limit
