-- The keys of the schedules that have an id, of all owners.
SELECT key FROM schedule WHERE id = :id ORDER BY owner LIMIT :limit
