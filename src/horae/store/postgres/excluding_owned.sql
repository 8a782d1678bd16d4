-- A page of the schedules of one owner whose specs contain a text, in the order of their ids.
SELECT id FROM schedule
WHERE owner = :owner AND id > :after AND position(:needle::text IN spec) > 0
ORDER BY id
LIMIT :limit
