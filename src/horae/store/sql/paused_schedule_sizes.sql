-- The keys and sizes of a page of the schedules that are paused and pass a filter, of one owner or of all.
SELECT key, {size(schedule)}
FROM schedule {index(schedule_paused)}
WHERE {position}(state, '"paused"') > 0
    AND (id, owner) > (:after_id, :after_owner) AND (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
{include(filter)}
ORDER BY id, owner
LIMIT :limit
