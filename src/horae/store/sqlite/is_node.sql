-- Whether a node is registered; no other connection writes meanwhile.
SELECT 1 FROM node WHERE epoch = :epoch
