-- The runs with the given ids, without their inputs: for their claims and stop requests.
SELECT {columns(run_without_input)} FROM run WHERE id {among(ids, text)}
