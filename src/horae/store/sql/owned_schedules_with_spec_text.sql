-- A page of the ids of schedules of one owner whose specs contain a text.
SELECT id FROM schedule
WHERE owner = :owner AND id > :after AND {position}(spec, :text) > 0
ORDER BY id
LIMIT :limit
