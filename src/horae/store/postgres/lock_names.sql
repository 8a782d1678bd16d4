-- Nodes take their names one after another.
SELECT pg_advisory_xact_lock(hashtext('horae'), hashtext('node names'))
