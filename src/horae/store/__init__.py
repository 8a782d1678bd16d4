"""The store: one port in the terms of the engine's steps, and its implementations. It decides nothing."""
