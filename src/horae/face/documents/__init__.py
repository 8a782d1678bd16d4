"""Schedules as files: documents and crontabs are read, and compared with what there is. Commands and the console use it."""
