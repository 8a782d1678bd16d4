"""Schedules as files: reads documents and crontabs, and compares them with what is stored. For commands and the console."""
