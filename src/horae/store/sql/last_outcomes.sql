-- The last outcomes of the given schedules, for their next runs.
SELECT {columns(last_outcome)} FROM last_outcome WHERE schedule_key {among(keys, text)}
