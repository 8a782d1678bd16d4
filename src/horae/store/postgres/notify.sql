-- Wake the other nodes when this transaction commits; several in one transaction are sent as one.
SELECT pg_notify('horae', '')
