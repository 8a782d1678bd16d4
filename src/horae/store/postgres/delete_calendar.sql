-- Shared calendars that are not needed any more.
DELETE FROM calendar USING unnest(:owner::text[], :name::text[]) AS gone (owner, name)
WHERE calendar.owner = gone.owner AND calendar.name = gone.name
