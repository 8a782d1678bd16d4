-- Release the space that widen_node took.
UPDATE node SET tzdata = substr(tzdata, 1, length(tzdata) - CAST(:filler AS INTEGER)) WHERE epoch = :epoch
