-- What a schedule was before edits that are past its retention.
DELETE FROM version WHERE schedule_id = :schedule_id AND until < :before
