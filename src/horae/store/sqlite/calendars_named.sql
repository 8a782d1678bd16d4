-- The shared calendars of some names that an owner can use: everybody's, and his own.
SELECT owner, name, document, updated_at FROM calendar
WHERE name IN (SELECT value FROM json_each(:names)) AND owner IN ('', :owner)
ORDER BY owner
