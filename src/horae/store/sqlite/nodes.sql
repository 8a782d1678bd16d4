-- All registered nodes, and whether their leases hold if they have any.
SELECT {columns(node)}, deadline_ms > {time_ms} FROM node ORDER BY epoch
