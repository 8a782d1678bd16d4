-- The shared calendars of some names that an owner can use: the public ones, then the owner's own.
SELECT {columns(calendar)} FROM calendar
WHERE name {among(names, text)} AND owner IN ('', :owner)
ORDER BY owner
