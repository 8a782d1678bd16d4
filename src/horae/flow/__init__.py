"""Flows as users write them: `Flow`, the contexts and results of its handlers, and the checks when it is deployed."""
