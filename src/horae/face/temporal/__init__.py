"""The schedule calls of Temporal's gRPC service, so that its own clients manage Horae's schedules.

Messages are translated by pure functions (``*_message.py``), ``calls.py`` calls the operations, ``server.py`` listens.
"""
