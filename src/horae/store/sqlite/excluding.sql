-- A page of the schedules whose specs contain a text, in the order of their ids.
SELECT id FROM schedule
WHERE id > :after AND instr(spec, :needle) > 0
ORDER BY id
LIMIT :limit
