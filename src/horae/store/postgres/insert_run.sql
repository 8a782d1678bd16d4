-- Runs that did not exist, as one array a column.
INSERT INTO run (id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, reason, attempt,
    epoch, started_at, ended_at, input, result, failure)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[],
    $16::text[], $17::text[])
