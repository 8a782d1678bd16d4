-- The same, and nobody can change them until the end.
SELECT owner, name, document, updated_at FROM calendar
WHERE name = ANY (:names::text[]) AND owner IN ('', :owner)
ORDER BY owner
FOR SHARE
