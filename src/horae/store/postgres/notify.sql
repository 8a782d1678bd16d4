-- Wake the other nodes when this transaction commits; several in one transaction are sent as one.
-- What it is about is empty, or a decider and who sent it.
-- The channel has the name of the schema, so that nodes of another one are not woken.
SELECT pg_notify(current_schema(), :about)
