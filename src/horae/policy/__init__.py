"""What: pure functions from values to frozen decisions. No I/O, no clock, no randomness, no logging."""
