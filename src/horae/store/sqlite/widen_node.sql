-- Let a node's row take room, to know whether there is some.
UPDATE node SET tzdata = tzdata || :filler WHERE epoch = :epoch
