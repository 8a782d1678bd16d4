"""The engine: small steps that read, decide and write, and start actions only after the commit."""
