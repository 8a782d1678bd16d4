-- Remove a shared calendar.
DELETE FROM calendar WHERE owner = :owner AND name = :name RETURNING name
