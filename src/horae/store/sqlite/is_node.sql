-- Whether a node is registered; no other connection can write until the transaction ends.
SELECT 1 FROM node WHERE epoch = :epoch
