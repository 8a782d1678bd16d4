-- The keys of the schedules that had an id, of all owners; their ledgers are kept.
SELECT schedule_key FROM generation WHERE schedule_id = :id ORDER BY schedule_key LIMIT :limit
