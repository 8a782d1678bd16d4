-- Whether a node is there; nobody else writes meanwhile.
SELECT 1 FROM node WHERE epoch = :epoch
