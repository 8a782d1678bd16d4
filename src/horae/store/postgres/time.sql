-- The database's own time, in milliseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
