-- Wake the other nodes when this transaction commits; many in one are one.
SELECT pg_notify('horae', '')
