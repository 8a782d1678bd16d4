"""An action whose input has a type: it is given to ``horae serve --app``."""

from __future__ import annotations

import horae

app = horae.App(":memory:")


@app.action
def count(rows: int) -> None: ...
