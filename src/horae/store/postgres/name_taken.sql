-- Whether another node whose lease holds has a name.
SELECT 1 FROM node WHERE name = :name AND epoch <> :epoch AND deadline > clock_timestamp()
