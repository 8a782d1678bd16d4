-- Where new schedules stand, and when to look at them.
COPY due (schedule_id, cursor, next_at) FROM STDIN
