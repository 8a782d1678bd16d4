-- The runs with the given numbers, newest first.
SELECT {columns(run)} FROM run WHERE number {among(numbers, bigint)} ORDER BY number DESC
