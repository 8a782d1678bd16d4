-- The keys of the schedules that had an id, of all owners; their ledgers are kept. Without an owner, the key is the id.
SELECT schedule_key FROM generation WHERE schedule_key = :id AND schedule_id = :id
UNION ALL
SELECT schedule_key FROM generation WHERE schedule_id = :id AND schedule_key <> schedule_id
ORDER BY schedule_key LIMIT :limit
