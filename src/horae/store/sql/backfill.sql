-- One backfill.
SELECT {columns(backfill)} FROM backfill WHERE id = :id
