"""The page that compares: every scheduler has its job and its merits, and the jobs are accepted by the packages they are for."""

from __future__ import annotations

import ast
import textwrap
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import procrastinate
import pytest
from apscheduler.schedulers.blocking import BlockingScheduler
from celery.schedules import crontab
from procrastinate.testing import InMemoryConnector
from temporalio import client as temporal

from horae.spec import Spec
from tests.support.pages import blocks_of
from tests.support.process import ROOT

PAGE = "docs/explanation/compared-with.md"
TEXT = (ROOT / PAGE).read_text("utf-8")
PEERS = ["cron", "APScheduler", "Celery beat", "Procrastinate", "DBOS", "Temporal", "Airflow"]
NINE_IN_BERLIN = datetime(2026, 7, 1, 7, tzinfo=UTC)


def report() -> None: ...


def job(name: str) -> str:
    """The job as it is written for one of them."""
    (found,) = [each.text for each in blocks_of(PAGE) if f"### {name}\n" in each.before]
    return found


@pytest.mark.parametrize("name", PEERS)
def test_each_has_the_job_and_what_horae_does_not_have(name: str):
    assert job(name)
    assert f"**{name.removesuffix(' beat')}**" in TEXT.partition("## What they have that Horae does not")[2]
    header = next(line for line in TEXT.splitlines() if line.startswith("| | Horae |"))
    assert name in header


def test_the_job_for_horae_is_that_of_the_readme():
    readme = next(each.text for each in blocks_of("README.md") if each.kind == "python")
    shared = {line for line in readme.splitlines() if line.startswith(("import", "@app", "app.run"))}
    assert shared <= set(job("Horae").splitlines())


def test_the_job_for_apscheduler(monkeypatch: pytest.MonkeyPatch):
    started: list[BlockingScheduler] = []

    def start(self: BlockingScheduler) -> None:
        started.append(self)

    monkeypatch.setattr(BlockingScheduler, "start", start)
    text = job("APScheduler").replace('"sqlalchemy", url="sqlite:///jobs.sqlite"', '"memory"')
    exec(text, {"report": report})  # noqa: S102 - it is our own page
    (scheduler,) = started
    (added,) = scheduler.get_jobs()
    assert added.trigger.get_next_fire_time(None, NINE_IN_BERLIN - timedelta(hours=1)) == NINE_IN_BERLIN


def test_the_job_for_celery():
    namespace: dict[str, Any] = {}
    exec(job("Celery beat"), namespace)  # noqa: S102
    celery = namespace["celery"]
    assert celery.conf.beat_schedule["report"]["schedule"] == crontab(hour=9, minute=0)
    assert celery.conf.beat_schedule["report"]["task"] in celery.tasks


def test_the_job_for_procrastinate_is_an_hour_off_for_half_of_the_year():
    app = procrastinate.App(connector=InMemoryConnector())
    exec(job("Procrastinate"), {"app": app})  # noqa: S102
    (periodic,) = app.periodic_registry.periodic_tasks.values()
    summer, winter = (
        Spec.cron(periodic.cron).next_after(datetime(2026, month, 1, tzinfo=UTC)) for month in (7, 12)
    )
    ours = Spec.cron("0 9 * * *", timezone="Europe/Berlin")
    assert summer == ours.next_after(datetime(2026, 7, 1, tzinfo=UTC))
    assert winter != ours.next_after(datetime(2026, 12, 1, tzinfo=UTC))


async def test_the_job_for_temporal():
    names = {name: value for name, value in vars(temporal).items() if name.startswith("Schedule")}
    client, workflow = mock.AsyncMock(), mock.Mock()
    workflow.run = "ReportWorkflow"
    code = compile(job("Temporal"), PAGE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(code, names | {"client": client, "ReportWorkflow": workflow})  # noqa: S307
    created = client.create_schedule.await_args.args[1]
    assert isinstance(created, temporal.Schedule)
    assert created.policy.overlap == temporal.ScheduleOverlapPolicy.SKIP


def test_the_others_are_python():
    for name in ("DBOS", "Airflow"):
        ast.parse(textwrap.dedent(job(name)))
