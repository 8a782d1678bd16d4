"""Show: the ways in. Thin: parse, ask, render."""
