-- Whether another living node has a name.
SELECT 1 FROM node WHERE name = :name AND epoch <> :epoch AND deadline > clock_timestamp()
