-- What the latest runs of some schedules left to the next.
SELECT {columns(last_outcome)} FROM last_outcome WHERE schedule_key {among(keys, text)}
