-- What owners keep with their schedules, and the calendars that many schedules exclude.
ALTER TABLE schedule ADD COLUMN memo TEXT;
ALTER TABLE schedule ADD COLUMN search_attributes TEXT;
ALTER TABLE schedule ADD COLUMN request_id TEXT;

CREATE TABLE calendar (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
);
