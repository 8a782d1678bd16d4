-- Take space in the row of a node, to prove that the database has some.
UPDATE node SET tzdata = tzdata || CAST(:filler AS TEXT) WHERE epoch = :epoch
