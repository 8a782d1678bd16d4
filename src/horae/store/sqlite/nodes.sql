-- All registered nodes.
SELECT {columns(node)} FROM node ORDER BY epoch
