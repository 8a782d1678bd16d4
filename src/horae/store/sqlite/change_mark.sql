-- A number that grows when another connection has changed the file.
PRAGMA data_version
