-- Whether a node is there and lives; nobody can bury it until the end.
SELECT 1 FROM node WHERE epoch = :epoch AND deadline > clock_timestamp() FOR KEY SHARE
