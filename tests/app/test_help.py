"""What Python shows of Horae when asked: ``dir``, ``help`` and signatures."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Iterator
from typing import Any

import horae
import horae.errors
import horae.flows
import horae.registrar
import horae.spec
import horae.testing
from horae.app import ScopedOperations
from horae.app.schedule_draft import CreateFields
from horae.app.schedule_edits import UpdateFields
from tests.support.cases import each_of
from tests.support.process import printed_by

MODULES = (horae, horae.flows, horae.registrar, horae.spec)
TOOLS = (horae.testing.TimeMachine, horae.testing.VirtualClock)
PARTS = ("schedules", "runs", "backfills", "calendars", "why", "grants", "usage", "flows", "workflows")


def public() -> Iterator[Any]:
    for module in MODULES:
        yield from (getattr(module, name) for name in module.__all__)
    yield from TOOLS
    yield from vars(horae.errors).values()


def classes() -> list[type]:
    parts = [getattr(app, name) for app in (horae.App, horae.SyncApp) for name in (*PARTS, "accounts")]
    found = [each for each in (*public(), *parts, ScopedOperations) if inspect.isclass(each)]
    return [each for each in dict.fromkeys(found) if each.__module__.startswith("horae.")]


def methods() -> list[tuple[type, str]]:
    return [
        (kind, name)
        for kind in classes()
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]


def test_dir_shows_the_public_names_before_and_after_they_are_loaded():
    told = printed_by("import horae; print(dir(horae)); horae.App; print(dir(horae))").splitlines()
    assert told == [str(sorted(horae.__all__))] * 2


@each_of("kind", classes())
def test_help_of_a_public_class(kind: type):
    assert pydoc.render_doc(kind)


@each_of(("kind", "name"), methods())
def test_help_of_a_method_shows_its_keywords(kind: type, name: str):
    assert f"{name}(" in pydoc.plain(pydoc.render_doc(getattr(kind, name)))
    assert "Unpack[" not in str(inspect.signature(getattr(kind, name)))


def test_an_app_has_every_method_that_its_class_shows():
    for app in (horae.App(":memory:"), horae.SyncApp(":memory:")):
        for name in ("schedule", "once", "prune_orphans", "action", "use", "run"):
            shown, own = getattr(type(app), name), getattr(app, name)
            assert [*inspect.signature(shown).parameters][1:] == [*inspect.signature(own).parameters]
        for name in (*PARTS, "accounts"):
            assert type(getattr(app, name)) is getattr(type(app), name)


@each_of(("app", "name", "fields"), [
    (app, name, fields)
    for app in (horae.App, horae.SyncApp)
    for name, fields in (("create", CreateFields), ("update", UpdateFields))
])  # fmt: skip
def test_the_fields_of_a_schedule_are_keywords_with_types_and_defaults(app: Any, name: str, fields: Any):
    shown = inspect.signature(getattr(app.schedules, name)).parameters
    for field, kind in fields.__annotations__.items():
        assert shown[field].annotation == kind.__forward_arg__
        assert shown[field].default is not inspect.Parameter.empty
    assert set(shown) - set(fields.__annotations__) <= {"self", "schedule_id", "spec", "action", "version"}


def test_help_shows_policies_by_what_differs_from_the_defaults():
    assert repr(horae.Policies()) == "Policies()"
    assert repr(horae.Policies(retry={"attempts": 3})) == "Policies(retry=RetryPolicy(attempts=3))"
