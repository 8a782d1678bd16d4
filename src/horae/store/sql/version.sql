-- How many migrations the database has taken.
SELECT version FROM horae
