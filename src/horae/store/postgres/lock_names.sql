-- Make nodes take their names one at a time.
SELECT pg_advisory_xact_lock(hashtext('horae'), hashtext('node names'))
