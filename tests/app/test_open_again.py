"""An app can be opened, closed and opened again, in the same event loop or in another; closed, it says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from horae import App, Config
from horae.errors import AppNotOpenError
from horae.executor.function_executor import FunctionExecutor

QUICK = Config(tick_ms=50, housekeeping_ms=100)


async def serve_until_run(app: App, ran: asyncio.Event) -> None:
    """Keep time until the action has run, with several callers at once, so that all locks are contended."""
    serving = asyncio.create_task(app.serve())
    await ran.wait()
    await asyncio.gather(*(app.schedules.list() for _ in range(20)))
    assert (await app.readiness()).status == "ready"
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_an_app_is_opened_again_in_another_event_loop(store: str, tmp_path: Path, postgres: str):
    app = App(f"sqlite:///{tmp_path}/horae.db" if store == "sqlite" else postgres, config=QUICK)
    happened: list[asyncio.Event] = []

    async def once_more() -> None:
        happened.append(asyncio.Event())
        loop = asyncio.get_running_loop()
        app.functions.register("work", lambda: loop.call_soon_threadsafe(happened[-1].set), replace=True)
        if len(happened) == 1:
            async with app:
                await app.schedules.create("s", "* * * * * *", "work")
                await serve_until_run(app, happened[-1])  # in an app that is open
        else:
            await serve_until_run(app, happened[-1])  # opens it, and closes it
        with pytest.raises(AppNotOpenError):
            await app.schedules.list()

    asyncio.run(once_more())
    asyncio.run(once_more())
    asyncio.run(once_more())


async def test_an_app_is_opened_once_at_a_time(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path}/horae.db")
    with pytest.raises(AppNotOpenError, match="not open"):
        await app.schedules.get("s")
    async with app:
        with pytest.raises(RuntimeError, match="open already"):
            await app.open()
        assert await app.schedules.list() == []


async def test_an_executor_that_cannot_be_closed_keeps_nothing_else_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    closed: list[str] = []

    class Broken(FunctionExecutor):
        kind = "broken"

        async def close(self) -> None:
            raise ConnectionError("the broker is away")

    class Sound(FunctionExecutor):
        kind = "sound"

        async def close(self) -> None:
            closed.append(self.kind)

    app = App(f"sqlite:///{tmp_path}/horae.db", config=QUICK)
    app.use(Broken())
    app.use(Sound())
    async with app:
        pass
    assert closed == ["sound"]
    assert 'the executor of the kind "broken" cannot be closed' in caplog.text
    async with app:  # its node has left the database, and joins again
        assert await app.schedules.list() == []


@pytest.mark.parametrize("address", [":memory:", "sqlite:///:memory:"])
async def test_a_database_in_memory_is_no_file(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    async with App(address) as app:
        app.functions.register("work", lambda: None)
        await app.schedules.create("s", "0 9 * * *", "work")
        assert await app.schedules.count() == 1
    assert list(tmp_path.iterdir()) == []
