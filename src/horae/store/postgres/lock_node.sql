-- Wait until no transaction claims anything as this node.
SELECT 1 FROM node WHERE epoch = :epoch FOR UPDATE
