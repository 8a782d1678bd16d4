-- The keys of the schedules that are due soonest, of one owner or of all and with a tag or any, among those that are due first.
SELECT schedule.key, soon.next_at_ms
FROM (
    SELECT schedule_key, next_at_ms FROM due WHERE next_at_ms IS NOT NULL ORDER BY next_at_ms LIMIT :examined
) AS soon JOIN schedule ON schedule.key = soon.schedule_key
WHERE (CAST(:owner AS TEXT) IS NULL OR owner = :owner) AND (CAST(:tag AS TEXT) IS NULL OR {has(tags, tag)})
ORDER BY soon.next_at_ms, schedule.key
LIMIT :limit
