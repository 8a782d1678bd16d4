-- Some runs by their numbers, newest first.
SELECT {columns(run)} FROM run WHERE number {among(numbers, bigint)} ORDER BY number DESC
