-- Let a node's row take room, to know whether there is some.
UPDATE node SET tzdata = tzdata || new.filler
FROM unnest(:epoch::bigint[], :filler::text[]) AS new (epoch, filler)
WHERE node.epoch = new.epoch
