-- A node is gone.
DELETE FROM node WHERE epoch = :epoch
