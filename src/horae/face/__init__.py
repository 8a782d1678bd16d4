"""User interfaces: Python, HTTP, console, command line, Temporal's gRPC. Each parses, calls one operation and renders the answer."""
