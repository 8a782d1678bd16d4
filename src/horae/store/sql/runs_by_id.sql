-- Some runs.
SELECT {columns(run)} FROM run WHERE id {among(ids, text)}
