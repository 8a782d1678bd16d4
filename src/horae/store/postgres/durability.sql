-- The server's settings for durable commits, and whether it is a standby.
SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery()
