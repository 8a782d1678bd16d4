-- Wait until no other transaction holds the lock of this name.
SELECT pg_advisory_xact_lock(hashtextextended('horae workflow ' || CAST(:name AS TEXT), 0))
