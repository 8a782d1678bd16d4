-- A shared calendar that is not needed any more.
DELETE FROM calendar WHERE owner = :owner AND name = :name
