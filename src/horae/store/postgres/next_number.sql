-- A number that was never given before.
SELECT nextval('horae_number')
