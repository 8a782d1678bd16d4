"""Each decision is a line, in either form, and no line has a secret in it."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, Context, NotStartedError, OnResume, Overlap, Policies, RetryPolicy
from horae.engine.maintenance import MaintenanceReport
from horae.errors import StoreUnavailableError
from horae.face.service.log_observer import LogObserver
from horae.face.service.logging_setup import Log
from horae.model import Reason
from horae.policy.reason import SENTENCES
from horae.testing import TimeMachine
from tests.support.loggers import loggers_as_before
from tests.support.process import ROOT, Server, environment
from tests.support.wait import wait_for

START = datetime(2026, 3, 2, tzinfo=UTC)
SECRET = "s3cr3t-of-somebody"  # noqa: S105 - it guards nothing


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    with loggers_as_before():
        yield


def log_to(stream: io.StringIO, form: Any = "json", level: Any = "info") -> Log:
    return Log(Config(log_format=form, log_level=level), stream)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def busy_hour(level: str = "info", form: str = "json") -> io.StringIO:
    """A schedule that overlaps itself, one that fails and is tried again, and one that cannot begin."""
    stream = io.StringIO()
    async with TimeMachine(START) as tm:
        tm.app.watch(LogObserver(log_to(stream, form, level)))

        @tm.app.action("slow")
        async def slow(context: Context) -> None:
            await tm.sleep(seconds=90)

        @tm.app.action("fails")
        async def fails(context: Context) -> None:
            raise RuntimeError(f"cannot log in at https://me:{SECRET}@mail.example")

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
async def test_each_slot_is_a_line_with_schedule_slot_and_reason():
    found = lines(await busy_hour())
    assert [(each["event"], each["schedule"], each["slot"][11:16], each["status"], each["reason"], each["level"]) for each in found] == [
        ("decision", "slow", "00:02", "skipped", "overlap", "info"),
        ("ended", "slow", "00:01", "succeeded", "due", "info"),
        ("ended", "fails", "00:05", "retrying", "failed", "warning"),
        ("ended", "fails", "00:05", "failed", "failed", "error"),
        ("ended", "refuses", "00:10", "dropped", "not_started", "error"),
        ("ended", "slow", "00:20", "succeeded", "trigger", "info"),
    ]  # fmt: skip
    assert all(each["sentence"] and each["timestamp"].endswith("Z") for each in found)
    assert found[0]["sentence"] == SENTENCES[Reason.OVERLAP]
    assert (found[1]["attempt"], found[1]["took_ms"]) == (1, 90_000)
    assert all(each["run"] for each in found if each["status"] != "skipped")
    failed = [each for each in found if each["schedule"] == "fails" and each["event"] == "ended"]
    assert [(each["attempt"], each["action"], each["follows"]) for each in failed] == [
        (1, "fails", "retry in 1s"),
        (2, "fails", "gave up"),
    ]
    assert failed[1]["sentence"] == "RuntimeError: cannot log in at https://***@mail.example; gave up"
    assert all("in fails\n" in each["exception"] and "src/horae" not in each["exception"] for each in failed)


async def test_what_begins_is_logged_at_debug_level():
    found = lines(await busy_hour("debug"))
    assert [(each["schedule"], each["reason"]) for each in found if each.get("status") == "starting"] == [
        ("slow", "due"),
        ("fails", "due"),
        ("fails", "again"),
        ("refuses", "due"),
        ("slow", "trigger"),
    ]
    assert [each["drift_ms"] for each in found if each["event"] == "launched" and each["attempt"] == 1] == [
        0
    ] * 4


async def test_nothing_is_written_below_the_log_level():
    found = lines(await busy_hour("error"))
    assert [(each["schedule"], each["status"]) for each in found] == [
        ("fails", "failed"),
        ("refuses", "dropped"),
    ]


async def test_lines_for_people():
    text = (await busy_hour(form="console")).getvalue()
    told = [line for line in text.splitlines() if re.match(r"\d{4}-", line)]
    assert len(told) == 6
    assert text.count("Traceback (most recent call last):") == 2
    # All lines have the same columns.
    assert [line[28:] for line in told[:2]] == [
        "[info     ] slow                 skipped    another run of the schedule was still running slot=2026-03-02T00:02:00Z reason=overlap",
        f"[info     ] slow                 succeeded  {'its time came':40} slot=2026-03-02T00:01:00Z run={told[1].partition('run=')[2]}",
    ]
    assert told[3][28:].startswith("[error    ] fails                failed     RuntimeError: cannot log in")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
async def test_lines_for_people_in_a_terminal(no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", no_color)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    log_to(stream, "console").lines([("info", {"event": "decision", "schedule": "s"})])
    assert ("\x1b[" in stream.getvalue()) is coloured
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
    unstarted = [each for each in lines(stream) if each["status"] != "succeeded"]
    assert {(each["status"], each["reason"]) for each in unstarted} == {("skipped", "limit_reached")}
    assert sum(each.get("count", 1) for each in unstarted) >= 29


@pytest.mark.contract("CRON-17")
@pytest.mark.contract("GRNT-12")
def test_what_maintenance_repaired_is_logged():
    stream = io.StringIO()
    observer = LogObserver(log_to(stream))
    observer.maintained(MaintenanceReport(pruned=5))
    assert lines(stream) == []
    observer.maintained(MaintenanceReport(repaired=1, stale=2))
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["count"], line["stale"]) == ("repaired", "warning", 1, 2)


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
    stream = io.StringIO()
    log_to(stream)
    extra = {"schedule": "s", "attention": "needs attention: it is spoiled"}
    logging.getLogger("horae").warning("schedule s needs attention: it is spoiled", extra=extra)
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["schedule"]) == ("attention", "warning", "s")
    assert line["sentence"] == "needs attention: it is spoiled"


async def test_a_store_that_is_away_is_told_once(postgres: str):
    stream = io.StringIO()
    log_to(stream)
    async with App(postgres) as app:
        await app._store.close()
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await app.engine.step(app.now())
            with pytest.raises(StoreUnavailableError):
                await app.schedules.list()
        await app._store.open(app.wake)
        await app.engine.step(app.now())
        await app.engine.step(app.now())
    assert [(each["level"], each["event"]) for each in lines(stream)] == [
        ("error", StoreUnavailableError("the store is not open").for_operator),
        ("info", "the database answers again"),
    ]


# What others log, and what must not be


def test_what_others_log_comes_out_here_too():
    stream = io.StringIO()
    log = log_to(stream)
    logging.getLogger("horae").warning("something about %s", "time")
    logging.getLogger("jobs").info("of a library")
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("uvicorn.access").info("GET /?token=%s", SECRET)
    logging.getLogger("horae").debug("too small")
    own = logging.getLogger("jobs")
    own.addHandler(logging.StreamHandler())  # a module that sets up logging when it is imported
    own.propagate = False
    log.collect()
    own.info("of a library that has a handler of its own")
    assert [(each["event"], each["level"], each.get("logger")) for each in lines(stream)] == [
        ("something about time", "warning", None),
        ("of a library", "info", "jobs"),
        ("Invalid HTTP request received.", "warning", "uvicorn.error"),
        ("of a library that has a handler of its own", "info", "jobs"),
    ]


NOISY = """
import logging, threading, warnings, sys
import horae

logging.basicConfig(level=logging.DEBUG, format="%(message)s")
warnings.warn("an old way")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
app = horae.App(":memory:")

@app.action("bad")
async def bad(context):
    context.log.info("it begins")
    print("to standard output")
    raise ValueError("two\\nlines")
"""


def test_every_line_is_json_when_json_is_asked_for(tmp_path: Path):
    (tmp_path / "noisy.py").write_text(NOISY)
    settings = {
        "HORAE_LOG_FORMAT": "json",
        "HORAE_LOG_LEVEL": "INFO",
        "PYTHONPATH": f"{ROOT / 'src'}:{tmp_path}",
    }
    server = Server(f"sqlite:///{tmp_path / 'horae.db'}", app="noisy", interpreter=sys.executable, **settings)
    try:
        server.ask("POST", "/schedules", {"id": "s", "spec": {}, "action": "bad", "trigger": True})
        wait_for(lambda: '"gave up"' in server.log)
    finally:
        server.end()
    told = [json.loads(line) for line in server.log.splitlines()]
    assert all(each["level"] and each["timestamp"] and each["event"] for each in told)
    exceptions = [each["exception"].splitlines()[-1] for each in told if "exception" in each]
    assert exceptions == ["ZeroDivisionError: division by zero", "lines"]
    assert any("an old way" in each["event"] for each in told)
    assert [(each["schedule"], each["attempt"]) for each in told if each["event"] == "it begins"] == [
        ("s", 1)
    ]


def test_a_service_that_cannot_begin_says_so_as_json(tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, "-m", "horae", "serve", "--database", "postgresql://nobody@127.0.0.1:1/none", "--port", "0"],
        env=environment(HORAE_LOG_FORMAT="json"), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    (told,) = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (ran.returncode, told["level"], told["event"]) == (2, "error", "Horae cannot serve")


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


@pytest.mark.parametrize("form", ["json", "console"])
async def test_secrets_are_masked_in_what_an_action_raises(form: str):
    text = (await busy_hour("debug", form)).getvalue()
    assert "RuntimeError: cannot log in at https://***@mail.example" in text
    assert SECRET not in text


def test_a_line_of_an_odd_name_stays_a_line():
    stream = io.StringIO()
    log_to(stream, "console").lines([("info", {"event": "decision", "schedule": "a\nb\x1b[31m c=d"})])
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()
