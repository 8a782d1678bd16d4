-- Whether a node is registered and its lease holds; it cannot be removed until the end.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM node WHERE epoch = :epoch AND deadline > clock_timestamp() FOR KEY SHARE
