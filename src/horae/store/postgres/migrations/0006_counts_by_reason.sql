-- How many slots of a schedule did not start, by reason; what came before is counted from the ledger, as far as it is kept.
-- The columns of due that had a part of that stay, because migrations only add; nothing reads them.
CREATE TABLE unstarted (
    schedule_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (schedule_id, reason)
);
INSERT INTO unstarted (schedule_id, reason, count)
SELECT p.schedule_id, p.reason, sum(p.count)
FROM unstarted_range AS p JOIN schedule AS s ON s.id = p.schedule_id AND s.generation = p.generation
GROUP BY p.schedule_id, p.reason;
