-- Let it be as it was.
UPDATE node SET tzdata = left(tzdata, length(tzdata) - new.filler)
FROM unnest(:epoch::bigint[], :filler::int[]) AS new (epoch, filler)
WHERE node.epoch = new.epoch
