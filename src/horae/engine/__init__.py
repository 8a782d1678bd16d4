"""Drive: small steps that read, decide, write, and only then start anything."""
