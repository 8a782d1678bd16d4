-- The keys and sizes of a page of the schedules that need attention and pass a filter, of one owner or of all.
SELECT key, {size(schedule)}
FROM schedule {index(schedule_attention)}
WHERE {position}(state, '"attention"') > 0
    AND (id, owner) > (:after_id, :after_owner) AND (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
{include(filter)}
ORDER BY id, owner
LIMIT :limit
