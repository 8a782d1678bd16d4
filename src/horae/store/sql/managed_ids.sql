-- A page of the ids of the schedules that a program or file defines. The second condition is that of the index.
SELECT id FROM schedule
WHERE managed_by = :managed_by AND managed_by <> '' AND id > :after
ORDER BY id
LIMIT :limit
