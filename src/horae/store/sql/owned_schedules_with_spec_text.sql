-- A page of the keys of schedules of one owner whose specs contain a text.
SELECT key FROM schedule
WHERE owner = :owner AND id > :after_id AND {position}(spec, :text) > 0
ORDER BY id
LIMIT :limit
