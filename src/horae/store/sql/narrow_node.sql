-- Undo what widened it.
UPDATE node SET tzdata = substr(tzdata, 1, length(tzdata) - CAST(:filler AS INTEGER)) WHERE epoch = :epoch
