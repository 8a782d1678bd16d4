-- Backfills that were asked for.
INSERT INTO backfill (id, schedule_id, generation, first, last, overlap, cursor, total, made, status, created_at,
    ended_at, author, note, input)
SELECT *
FROM unnest(:id::text[], :schedule_id::text[], :generation::bigint[], :first::bigint[], :last::bigint[],
    :overlap::text[], :cursor::bigint[], :total::bigint[], :made::bigint[], :status::text[], :created_at::bigint[],
    :ended_at::bigint[], :author::text[], :note::text[], :input::text[]) AS new (id, schedule_id, generation, first,
    last, overlap, cursor, total, made, status, created_at, ended_at, author, note, input)
