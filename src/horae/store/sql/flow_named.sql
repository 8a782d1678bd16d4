-- A flow by its owner and name.
SELECT {columns(flow)} FROM flow WHERE owner = :owner AND name = :name
