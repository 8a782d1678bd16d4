-- The sizes of a page of shared calendars, in the order of their names; of those before it only the names are read.
SELECT {size(calendar)}
FROM (
    SELECT owner, name FROM calendar
    WHERE (name, owner) > (:after_name, :after_owner) AND (CAST(:owner AS TEXT) IS NULL OR owner IN (:owner, ''))
    ORDER BY name, owner
    LIMIT :limit
) AS page JOIN calendar ON calendar.owner = page.owner AND calendar.name = page.name
ORDER BY calendar.name, calendar.owner
