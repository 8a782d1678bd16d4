"""How flows are written: `Flow`, what its handlers see and return, and the checks when it is deployed."""
