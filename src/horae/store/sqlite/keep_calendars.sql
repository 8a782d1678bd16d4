-- The same, and nobody can change them until the end.
SELECT owner, name, document, updated_at FROM calendar
WHERE name IN (SELECT value FROM json_each(:names)) AND owner IN ('', :owner)
ORDER BY owner
