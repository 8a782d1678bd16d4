"""``python -m horae`` is the command ``horae``."""

from horae.face.cli import main

main()
