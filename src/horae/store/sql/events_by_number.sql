-- The events with the given numbers.
SELECT {columns(flow_event)} FROM flow_event WHERE number {among(numbers, bigint)}
