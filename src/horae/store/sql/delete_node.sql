-- Remove a node.
DELETE FROM node WHERE epoch = :epoch
