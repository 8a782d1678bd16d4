-- End the lease of a node.
UPDATE node SET deadline_ms = 0 WHERE epoch = :epoch
