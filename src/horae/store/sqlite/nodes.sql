-- All nodes that nobody has buried.
SELECT epoch, name, actions, tzdata, started_at FROM node ORDER BY epoch
