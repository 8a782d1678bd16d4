-- One writer at a time: the whole database is locked.
SELECT 1 WHERE json_array_length(:ids) < 0
