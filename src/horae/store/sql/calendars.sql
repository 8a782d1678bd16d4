-- A page of shared calendars, in the order of their names: those of one owner and the public ones, or all.
SELECT {columns(calendar)} FROM calendar
WHERE (name, owner) > (:after_name, :after_owner) AND (CAST(:owner AS TEXT) IS NULL OR owner IN (:owner, ''))
ORDER BY name, owner
LIMIT :limit
