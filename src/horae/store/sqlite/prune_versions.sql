-- What a schedule was before edits that are past its retention, the oldest first; a few at a time.
DELETE FROM version WHERE schedule_id = :schedule_id AND (generation, version) IN (
    SELECT generation, version FROM version
    WHERE schedule_id = :schedule_id AND until < :before
    ORDER BY generation, version LIMIT :most
)
