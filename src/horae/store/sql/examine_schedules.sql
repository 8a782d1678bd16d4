-- The keys of the next schedules, whether or not they pass a filter, with the sizes of those that do.
SELECT key, CASE WHEN key IS NOT NULL {include(filter)} THEN {size(schedule)} END
FROM schedule
WHERE (id, owner) > (:after_id, :after_owner)
ORDER BY id, owner
LIMIT :limit
