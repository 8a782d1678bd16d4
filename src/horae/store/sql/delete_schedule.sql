-- Delete schedules; other statements delete their rows in other tables.
DELETE FROM schedule WHERE key {among(keys, text)}
