-- All nodes that nobody has buried, and whether they live.
SELECT epoch, name, actions, tzdata, started_at, deadline > clock_timestamp() FROM node ORDER BY epoch
