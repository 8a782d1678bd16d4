-- Like examine_schedules, for the schedules of one owner.
SELECT key, CASE WHEN key IS NOT NULL {include(filter)} THEN {size(schedule)} END
FROM schedule
WHERE owner = :owner AND id > :after_id
ORDER BY id
LIMIT :limit
