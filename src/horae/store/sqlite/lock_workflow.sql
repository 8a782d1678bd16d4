-- One transaction writes at a time.
SELECT :name
