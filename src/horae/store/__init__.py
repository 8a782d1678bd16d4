"""Memory: one port that speaks in the engine's steps, and its implementations. No decisions."""
