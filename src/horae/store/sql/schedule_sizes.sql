-- The keys and sizes of a page of the schedules that pass a filter.
SELECT key, {size(schedule)}
FROM schedule
WHERE (id, owner) > (:after_id, :after_owner)
{include(filter)}
ORDER BY id, owner
LIMIT :limit
