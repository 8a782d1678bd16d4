"""The web console under ``/console``: pages for people, rendered on the server, alive through one feed a node."""
