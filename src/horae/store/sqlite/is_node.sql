-- Whether a node is registered, and its lease holds if it has one; no other connection can write until the transaction ends.
SELECT 1 FROM node WHERE epoch = :epoch AND (deadline_ms IS NULL OR deadline_ms > {time_ms})
