-- Let the row of a node take space, to know whether there is some.
UPDATE node SET tzdata = tzdata || CAST(:filler AS TEXT) WHERE epoch = :epoch
