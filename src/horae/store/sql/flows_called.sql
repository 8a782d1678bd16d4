-- The first two flows of a name, of any owners.
SELECT {columns(flow)} FROM flow WHERE name = :name ORDER BY owner LIMIT 2
