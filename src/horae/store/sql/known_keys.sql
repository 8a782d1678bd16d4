-- A page of the keys of all schedules, including deleted ones, whose ledgers are kept too.
SELECT schedule_key FROM generation WHERE schedule_key > :after ORDER BY schedule_key LIMIT :limit
