-- Let it be as it was.
UPDATE node SET tzdata = substr(tzdata, 1, length(tzdata) - :filler) WHERE epoch = :epoch
