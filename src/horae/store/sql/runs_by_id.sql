-- The runs with the given ids.
SELECT {columns(run)} FROM run WHERE id {among(ids, text)}
