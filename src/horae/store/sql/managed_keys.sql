-- A page of the keys of the schedules that a program or file defines. The second condition is that of the index.
SELECT key FROM schedule
WHERE managed_by = :managed_by AND managed_by <> '' AND key > :after
ORDER BY key
LIMIT :limit
