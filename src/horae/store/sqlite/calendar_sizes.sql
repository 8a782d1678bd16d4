-- The sizes of a page of shared calendars, in the order of their names; of the others nothing but the names is read.
SELECT length(CAST(c.document AS BLOB))
FROM (
    SELECT owner, name FROM calendar
    WHERE (name, owner) > (:after_name, :after_owner) AND (:owner IS NULL OR owner IN (:owner, ''))
    ORDER BY name, owner
    LIMIT :limit
) AS page JOIN calendar AS c ON c.owner = page.owner AND c.name = page.name
ORDER BY c.name, c.owner
