-- When the schedule of a version was created: what is before that is no matter of its spec.
ALTER TABLE version ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0;
UPDATE version SET created_at = coalesce(
    (SELECT s.created_at FROM schedule AS s WHERE s.id = version.schedule_id AND s.generation = version.generation),
    (SELECT min(v.since) FROM version AS v
    WHERE v.schedule_id = version.schedule_id AND v.generation = version.generation)
);
