-- Make the nodes of a schema take their names one at a time.
SELECT pg_advisory_xact_lock(hashtext('horae node names'), hashtext(current_schema()))
