-- What the server promises of a commit, and whether it may be written to.
SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery()
