-- A number that was never given out before.
SELECT nextval('horae_number')
