-- The name and the deadline of another node whose lease holds.
SELECT name, deadline_ms FROM node WHERE epoch <> :epoch AND deadline_ms > {time_ms}
