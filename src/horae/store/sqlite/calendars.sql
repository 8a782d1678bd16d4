-- A page of shared calendars, in the order of their names.
SELECT owner, name, document, updated_at FROM calendar
WHERE (name, owner) > (:after_name, :after_owner) AND (:owner IS NULL OR owner IN (:owner, ''))
ORDER BY name, owner
LIMIT :limit
