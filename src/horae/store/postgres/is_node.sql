-- Whether a node is registered and its lease holds; it cannot be removed until the end.
SELECT 1 FROM node WHERE epoch = :epoch AND deadline > clock_timestamp() FOR KEY SHARE
