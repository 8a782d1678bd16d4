-- A backfill that was asked for.
INSERT INTO backfill (id, schedule_id, generation, first, last, overlap, cursor, total, made, status, created_at,
    ended_at, author, note, input)
VALUES (:id, :schedule_id, :generation, :first, :last, :overlap, :cursor, :total, :made, :status, :created_at,
    :ended_at, :author, :note, :input)
