-- A page of the keys of schedules whose specs contain a text.
SELECT key FROM schedule
WHERE (id, owner) > (:after_id, :after_owner) AND {position}(spec, :text) > 0
ORDER BY id, owner
LIMIT :limit
