-- Some runs without their inputs: whose claim they are under, and whether they were asked to stop.
SELECT {columns(run_without_input)} FROM run WHERE id {among(ids, text)}
