-- One node after another takes its name.
SELECT pg_advisory_xact_lock(hashtext('horae'), hashtext('node names'))
