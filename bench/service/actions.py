"""An action that does nothing."""

import horae

app = horae.App(":memory:")


@app.action("nothing")
async def nothing(context: horae.Context) -> None:
    """Nothing."""
