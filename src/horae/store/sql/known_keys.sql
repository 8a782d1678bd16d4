-- A page of the keys of all schedules that there ever were: the ledger of deleted ones is kept too.
SELECT schedule_key FROM generation WHERE schedule_key > :after ORDER BY schedule_key LIMIT :limit
