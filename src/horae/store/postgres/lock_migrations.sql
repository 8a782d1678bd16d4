-- Make programs migrate a schema one at a time; it need not exist yet.
SELECT pg_advisory_xact_lock(hashtext('horae migrations'), hashtext(:schema))
