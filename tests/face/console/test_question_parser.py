"""Questions in words: the time and the names that they have in them."""

from __future__ import annotations

from datetime import datetime

from horae.face.console.question_parser import names_in, phrases_in, time_of
from tests.support.cases import each_of

WEDNESDAY = datetime.fromisoformat("2026-11-18T10:20:30")


@each_of(
    ("question", "time"),
    [
        ("why did nightly not run yesterday at 2:30", "2026-11-17T02:30:00"),
        ("why did nightly not run yesterday at 2:30pm?", "2026-11-17T14:30:00"),
        ("will it run tomorrow at noon", "2026-11-19T12:00:00"),
        ("did it run at midnight", "2026-11-18T00:00:00"),
        ("did it run on monday at 9am", "2026-11-16T09:00:00"),
        ("will it run next monday at 9:00:05", "2026-11-23T09:00:05"),
        ("did it run today", "2026-11-18T00:00:00"),
        ("why does it not run now", "2026-11-18T10:20:30"),
        ("why did it not run 2h ago", "2026-11-18T08:20:30"),
        ("why did it not run 15 minutes ago?", "2026-11-18T10:05:30"),
        ("what happened 3 days ago", "2026-11-15T10:20:30"),
        ("why will it not run on 2027-03-14 at 2:30", "2027-03-14T02:30:00"),
        ("2027-03-14 02:30", "2027-03-14T02:30"),
        ("2027-03-14T02:30:00+01:00", "2027-03-14T02:30:00+01:00"),
        ("why did it not run", None),
        ("at 25:00", None),
        ("9999 weeks ago", "1835-04-01T10:20:30"),
        ("99999 weeks ago", None),
    ],
)
def test_the_time_of_a_question(question: str, time: str | None):
    assert time_of(question, WEDNESDAY) == time, question


@each_of(
    ("question", "names"),
    [
        ("why did nightyl not run yesterday at 2:30?", ["nightyl"]),
        ("Why did the schedule daily-report run on Monday at noon", ["daily-report"]),
        ("2027-03-14 02:30", []),
        ("why", []),
    ],
)
def test_the_names_of_a_question(question: str, names: list[str]):
    assert names_in(question) == names, question


@each_of(
    ("question", "phrases"),
    [
        ('why did "x y" not run', ["x y"]),
        ("why didn't 'the big one' run", ["the big one", "the big", "big one"]),
        ("why did “x y” not run today?", ["x y", "y” not run today"]),
        ("why did x y not run today?", ["y not run today", "x y"]),
        ("why did it not run", []),
    ],
)
def test_the_ids_with_spaces_of_a_question(question: str, phrases: list[str]):
    assert phrases_in(question) == phrases, question
