-- A page of the ids of schedules whose specs contain a text.
SELECT id FROM schedule
WHERE id > :after AND {position}(spec, :text) > 0
ORDER BY id
LIMIT :limit
