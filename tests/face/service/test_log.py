"""Each decision is a line, in either form, and no line has a secret in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from horae import App, Config, Context, NotStartedError, OnResume, Overlap, Policies, RetryPolicy
from horae.errors import StoreUnavailableError
from horae.face.service.log import Log, LogObserver
from horae.model import Reason
from horae.policy.reason import SENTENCES
from horae.testing import TimeMachine

START = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = ("horae", "uvicorn", "uvicorn.error", "uvicorn.access")
SECRET = "s3cr3t-of-somebody"  # noqa: S105 - it guards nothing


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    kept = [
        (each, each.handlers, each.propagate, each.level, each.disabled)
        for each in map(logging.getLogger, NAMES)
    ]
    yield
    for logger, handlers, propagate, level, disabled in kept:
        logger.handlers, logger.propagate, logger.disabled = handlers, propagate, disabled
        logger.setLevel(level)


def log_to(stream: io.StringIO, form: Any = "json", level: int = logging.INFO) -> Log:
    return Log(Config(log_format=form), stream, level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def busy_hour(level: int, form: str = "json") -> io.StringIO:
    """A schedule that overlaps itself, one that fails and is tried again, and one that cannot begin."""
    stream = io.StringIO()
    async with TimeMachine(START) as tm:
        tm.app.watch(LogObserver(log_to(stream, form, level)))

        @tm.app.action("slow")
        async def slow(context: Context) -> None:
            await tm.sleep(seconds=90)

        @tm.app.action("fails")
        async def fails(context: Context) -> None:
            raise RuntimeError(f"cannot log in with {SECRET}")

        @tm.app.action("refuses")
        async def refuses(context: Context) -> None:
            raise NotStartedError("not now", permanent=True)

        await tm.app.schedules.create("slow", "1-2 * * * *", action="slow")
        await tm.app.schedules.create(
            "fails", "5 0 * * *", action="fails", policies=Policies(retry=RetryPolicy(attempts=2))
        )
        await tm.app.schedules.create("refuses", "10 0 * * *", action="refuses")
        await tm.advance(minutes=20)
        await tm.app.schedules.trigger("slow", overlap=Overlap.ALLOW_ALL)
        await tm.advance(minutes=5)
    return stream


@pytest.mark.contract("CRON-17")
async def test_each_decision_is_a_line_with_schedule_slot_and_reason():
    found = lines(await busy_hour(logging.INFO))
    assert [(each["event"], each["schedule"], each["slot"][11:16], each["status"], each["reason"], each["level"]) for each in found] == [
        ("decision", "slow", "00:01", "starting", "due", "info"),
        ("decision", "slow", "00:02", "skipped", "overlap", "info"),
        ("decision", "fails", "00:05", "starting", "due", "info"),
        ("ended", "fails", "00:05", "retrying", "failed", "info"),
        ("decision", "fails", "00:05", "starting", "again", "info"),
        ("ended", "fails", "00:05", "failed", "failed", "warning"),
        ("decision", "refuses", "00:10", "starting", "due", "info"),
        ("ended", "refuses", "00:10", "dropped", "not_started", "warning"),
        ("decision", "slow", "00:20", "starting", "trigger", "info"),
    ]  # fmt: skip
    assert all(each["sentence"] and each["timestamp"].endswith("Z") for each in found)
    assert found[1]["sentence"] == SENTENCES[Reason.OVERLAP]
    assert all(each["run"] for each in found if each["status"] != "skipped")
    assert {each["error"] for each in found if each["status"] == "failed"} == {"RuntimeError"}


async def test_what_goes_well_is_logged_at_debug_level():
    found = lines(await busy_hour(logging.DEBUG))
    assert [each["schedule"] for each in found if each["event"] == "ended" and each["level"] == "debug"] == [
        "slow",
        "slow",
    ]
    assert [each["drift_ms"] for each in found if each["event"] == "launched" and each["attempt"] == 1] == [
        0
    ] * 4


async def test_nothing_is_written_below_the_log_level():
    assert (await busy_hour(logging.ERROR)).getvalue() == ""


async def test_lines_for_people():
    text = (await busy_hour(logging.INFO, "console")).getvalue()
    assert len(text.splitlines()) == 9
    assert (
        "[info     ] decision schedule=slow slot=2026-03-02T00:02:00Z status=skipped reason=overlap" in text
    )
    assert f"sentence={SENTENCES[Reason.OVERLAP]!r}" in text


async def test_lines_for_people_in_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    log_to(stream, "console").lines([("info", {"event": "decision", "schedule": "s"})])
    assert "\x1b[" in stream.getvalue()
    assert "decision" in stream.getvalue()


async def test_a_range_is_one_line():
    stream = io.StringIO()
    async with TimeMachine(START) as tm:
        tm.app.watch(LogObserver(log_to(stream)))
        tm.app.functions.register("noop", noop)
        await tm.app.schedules.create("s", "* * * * *", action="noop", remaining_actions=1)
        await tm.advance(minutes=1)
        await tm.app.schedules.skip_next("s", 0)
        await tm.app.schedules.update("s", remaining_actions=0)
        await tm.advance(minutes=30)
    unstarted = [each for each in lines(stream) if each["status"] != "starting"]
    assert {(each["status"], each["reason"]) for each in unstarted} == {("skipped", "limit_reached")}
    assert sum(each.get("count", 1) for each in unstarted) >= 29


@pytest.mark.contract("CRON-17")
async def test_slots_that_a_manual_change_leaves_unstarted_are_logged_too():
    stream = io.StringIO()
    async with TimeMachine(START) as tm:
        tm.app.watch(LogObserver(log_to(stream)))
        tm.app.functions.register("noop", noop)
        policies = Policies(on_resume=OnResume.SKIP)
        await tm.app.schedules.create("s", "0 * * * *", action="noop", policies=policies)
        await tm.app.schedules.pause("s")
        await tm.advance(hours=2)
        await tm.app.schedules.resume("s")
        tm.clock.move_to(START.replace(hour=3))  # no node has decided about this hour
        await tm.app.schedules.update("s", "30 * * * *")
        await tm.app.schedules.trigger("s")
        await tm.app.schedules.delete("s")
        await tm.advance(hours=1)
    assert [
        (
            each["event"],
            each["schedule"],
            each["slot"][11:16],
            each["status"],
            each["reason"],
            each.get("count"),
        )
        for each in lines(stream)
    ] == [
        ("decision", "s", "01:00", "skipped", "paused", 2),
        ("decision", "s", "03:00", "skipped", "edited", None),
        ("decision", "s", "03:00", "dropped", "deleted", None),
    ]
    assert lines(stream)[0]["last_slot"] == "2026-03-02T02:00:00Z"
    assert all(each["sentence"] for each in lines(stream))


async def noop(context: Context) -> None:
    pass


def test_a_schedule_that_cannot_be_read_needs_attention_and_says_so():
    from horae.model import Action, Schedule, State  # noqa: PLC0415
    from horae.policy.ledger_changes import Decision  # noqa: PLC0415

    stream = io.StringIO()
    schedule = Schedule(
        id="s", generation=1, spec="", action=Action(name="a"), policies=Policies(), state=State(), version=1, cursor_ms=0,
        created_at=0, updated_at=0,
    )  # fmt: skip
    aside = Decision(state=State(attention="needs attention: it is spoiled"), cursor_ms=0, next_at=None)
    LogObserver(log_to(stream)).decided([(schedule, aside)])
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["schedule"]) == ("attention", "warning", "s")


async def test_a_store_that_is_away_is_told_once(postgres: str):
    stream = io.StringIO()
    async with App(postgres) as app:
        app.watch(LogObserver(log_to(stream)))
        await app._store.close()
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await app.engine.step(app.now())
        await app._store.open(app.wake)
        await app.engine.step(app.now())
        await app.engine.step(app.now())
    told = [(each["level"], each["sentence"]) for each in lines(stream) if each["event"] == "store"]
    assert [level for level, _ in told] == ["error", "info"]


# What others log, and what must not be


def test_what_the_standard_library_logs_comes_out_here_too():
    stream = io.StringIO()
    log_to(stream)
    logging.getLogger("horae").warning("something about %s", "time")
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.access").info("GET /?token=%s", SECRET)
    logging.getLogger("horae").debug("too small")
    assert [(each["event"], each["level"]) for each in lines(stream)] == [
        ("something about time", "warning"),
        ("Started server process [7]", "info"),
    ]


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_masked(form: str):
    stream = io.StringIO()
    log = log_to(stream, form)
    log.line.info("request", authorization=f"Bearer {SECRET}", token=SECRET, jwt_secret=SECRET, Cookie=SECRET)
    log.line.info("request", headers={"x": SECRET}, nested={"deep": [{"api_token": SECRET}]}, password=SECRET)
    log.line.info(f"failed with Bearer {SECRET}", url=f"postgresql://user:{SECRET}@db/horae")
    log.line.info(f"got eyJhbGciOiJIUzI1NiJ9.{SECRET}.sig")
    log.lines([("info", {"event": "x", "secret": SECRET, "note": f"authorization: bearer {SECRET}"})])
    logging.getLogger("horae").error("cannot reach postgresql://user:%s@db/horae", SECRET)
    assert SECRET not in stream.getvalue()
    assert "postgresql://***@db/horae" in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "console"])
def test_an_exception_shows_where_and_not_what_variables_held(form: str):
    stream = io.StringIO()
    log = log_to(stream, form)
    held = SECRET[:6] + "-in-a-variable"

    def broken(argument: str) -> None:
        raise ValueError("broken")

    try:
        broken(held)
    except ValueError:
        log.line.exception("it failed")
        logging.getLogger("horae").exception("it failed too")
    shown = stream.getvalue()
    assert shown.count("ValueError: broken") == 2
    assert held not in shown


async def test_what_an_action_raises_is_not_logged():
    assert SECRET not in (await busy_hour(logging.DEBUG)).getvalue()


def test_a_line_of_an_odd_name_stays_a_line():
    stream = io.StringIO()
    log_to(stream, "console").lines([("info", {"event": "decision", "schedule": "a\nb\x1b[31m c=d"})])
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()
