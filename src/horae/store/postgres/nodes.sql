-- All registered nodes, and whether their leases hold.
SELECT {columns(node)}, deadline > clock_timestamp() FROM node ORDER BY epoch
