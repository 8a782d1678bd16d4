"""The report: tables of microseconds beside each other, the targets, and what to know about them."""

from __future__ import annotations

import statistics
from datetime import datetime
from importlib.metadata import version
from typing import NamedTuple

import tzdata

from bench import spec
from bench.page import bullets, compared, factor, machine, number, table
from bench.spec import LIBRARIES, OURS, Difference, Effort, Row

PURE_PYTHON = tuple(library.name for library in LIBRARIES if library.pure_python and library.name != OURS)

OPENING = """\
# How fast the time engine is

Each figure is microseconds per call, the least of many repeats, with the libraries taking turns
within each repeat. In brackets stands how many times slower or faster than Horae that is; the ratios
say more about other machines than the microseconds do. A lead of less than a tenth or so is within
what changes from run to run. All answers were compared before they were timed: a moment after which
the libraries disagree (they do near clock changes, see the end) is timed for none of them.
`make bench` writes this page anew.
"""

FOLLOWING = """\
The schedule is parsed already; each batch asks for the time after {moments} moments spread over a
year. Horae answers in UTC, the others in local time: converting an answer would add {conversion} µs.
"""

PARSING = """\
From the text of an expression to an object. No library remembers the expression from before. First
{constructions} in a row, as when many schedules are loaded; then one at a time, each just after the code
of the other libraries ran, which costs every library more.
"""

FIRST = """\
The same, and then the time after one moment in UTC. Horae builds its tables of days and times only
when it is first asked, so this is where their cost shows.
"""

DENSE = "Microseconds per time, for all the times in a row, collected in a list."

CACHE = """\
{parsed:,} spec documents were given to `Spec.parse`, {distinct:,} of them distinct: {objects:,} objects
came back, so equal documents share one compiled spec. The figure is microseconds per document, the
document read and checked each time. The peers remember nothing; theirs is a new object from the same
expression.
"""

CALLS = """\
- **horae**: `spec.next_after(moment)` and `spec.between(after, until, limit)` on a spec made before.
  For the parsing tables its caches are emptied before every call of `Spec.cron(…)`; time zones stay
  loaded, as they do for the others.
- **croniter-rs**, a compiled extension in Rust: `get_next(datetime, moment)` on one object, and
  `get_next_n` for many times. It works on the wall-clock time alone and answers without a zone, so
  the rows in America/New_York spare it the work on offsets that the others do.
- **cronsim**: its object is an iterator bound to its starting moment. The iterators are made before
  the clock starts and only the first `next()` of each is timed; who asks about a new moment has to
  pay for the construction as well, which stands under parsing.
- **APScheduler** 3: `get_next_fire_time(None, moment)` on one `CronTrigger.from_crontab(…)`; for many
  times, each answer is the start of the next question. It counts weekdays from Monday, so `1-5` is
  written `mon-fri` for it; a sixth field is given as `CronTrigger(second=…)`.
- **croniter**: `get_next(datetime, moment)` on one object; for many times, `get_next(datetime)` again
  and again. When only parsing is measured, its starting time is a plain number, to spare it a conversion.
"""

DIFFERENCES = """\
At all other moments that were compared, the libraries name the same time. Horae leaves out a time
that a clock change skips, unless the spec says `gap="shift"`, and repeats one that comes twice, unless
it says `fold="first"` or `"last"`. Local times in America/New_York; a dash stands for Horae's own answer.
"""


class Measured(NamedTuple):
    """All that one run found out."""

    following: list[Row]
    conversion: float
    parsing: list[Row]
    lone_parsing: list[Row]
    first: list[Row]
    dense: list[Row]
    cache: list[Row]
    parsed: int
    objects: int
    differences: list[Difference]


def measure(effort: Effort) -> Measured:
    """Run everything."""
    cache, parsed, objects = spec.cache_rows(effort)
    return Measured(
        spec.following_rows(effort), spec.conversion(effort), spec.parsing_rows(effort),
        spec.lone_parsing_rows(effort), spec.first_rows(effort), spec.dense_rows(effort), cache, parsed, objects,
        spec.all_differences(effort),
    )  # fmt: skip


def render(measured: Measured, effort: Effort) -> str:
    """The report as Markdown."""
    following = FOLLOWING.format(moments=effort.moments, conversion=number(measured.conversion))
    cache = CACHE.format(parsed=measured.parsed, distinct=spec.DISTINCT_DOCUMENTS, objects=measured.objects)
    return "\n".join(
        (
            OPENING,
            "## The machine\n",
            machine(
                ", ".join(f"{library.package} {version(library.package)}" for library in LIBRARIES),
                f"time-zone database {tzdata.IANA_VERSION}",
            ),
            "## The next time after a moment\n",
            following,
            library_table("`next_after`", measured.following),
            "## Parsing\n",
            PARSING.format(constructions=effort.constructions),
            library_table("parsing, in a row", measured.parsing),
            library_table("parsing, one at a time", measured.lone_parsing),
            "## Parsing and the first answer\n",
            FIRST,
            library_table("parsing and first answer", measured.first),
            "## Many times in a row\n",
            DENSE + "\n",
            library_table("`between`", measured.dense),
            "## Many documents, few distinct ones\n",
            cache,
            library_table("cache", measured.cache),
            "## Targets\n",
            bullets(targets(measured)),
            "## How each library is called\n",
            CALLS,
            "## Where the answers differ\n",
            DIFFERENCES,
            difference_table(measured.differences),
        )
    )


def library_table(title: str, rows: list[Row]) -> str:
    """A table with a column for each library: microseconds, and how that compares to Horae."""
    cells = []
    for label, microseconds in rows:
        ours, *others = (microseconds[library.name] for library in LIBRARIES)
        cells.append([label, number(ours), *(compared(other, ours, "slower", "faster") for other in others)])
    return table([title, *(library.name for library in LIBRARIES)], cells)


def difference_table(differences: list[Difference]) -> str:
    headings = ["expression", "after", *(library.name for library in LIBRARIES)]
    rows = [
        [f"`{expression}`", local(moment), *("–" if answer is None else local(answer) for answer in answers.values())]
        for expression, moment, answers in differences
    ]  # fmt: skip
    return table(headings, rows, texts=len(headings))


def local(moment: datetime) -> str:
    """``2026-03-08 03:00 -04:00``, with the seconds if there are any."""
    shown = moment.strftime("%Y-%m-%d %H:%M:%S" if moment.second else "%Y-%m-%d %H:%M")
    return shown + (moment.isoformat()[-6:].rjust(7) if moment.tzinfo else ", no zone")


def targets(measured: Measured) -> list[str]:
    """Each target, met or missed, with the figure that decides it. Nothing depends on the outcome."""
    following = measured.following
    slowest, at_slowest = max((row.microseconds[OURS], row.label) for row in following)
    lead, behind, at_lead = _closest(following, PURE_PYTHON)
    croniter = statistics.median(row.microseconds["croniter"] / row.microseconds[OURS] for row in following)
    dense, at_dense = max((row.microseconds[OURS], row.label) for row in measured.dense)
    verdicts = (
        ("`next_after` takes at most 8 µs on every row", slowest <= 8, f"{number(slowest)} µs, {at_slowest}"),
        (
            "`next_after` is ahead of every pure-Python library on every row",
            lead > 1,
            f"closest is {behind}, at {lead:.2f} times our time, {at_lead}",
        ),
        ("`next_after` is 10 times as fast as croniter in the median row", croniter >= 10, factor(croniter)),
        *_parsing_verdicts("in a row", measured.parsing),
        *_parsing_verdicts("one at a time", measured.lone_parsing),
        ("`between` takes at most 1 µs per time", dense <= 1, f"{number(dense)} µs, {at_dense}"),
        (
            f"equal documents share one object: {spec.DISTINCT_DOCUMENTS:,} for all",
            measured.objects == spec.DISTINCT_DOCUMENTS,
            f"{measured.objects:,}",
        ),
    )
    return [f"{'met' if met else '**missed**'}: {target} ({figure})" for target, met, figure in verdicts]


def _parsing_verdicts(manner: str, rows: list[Row]) -> tuple[tuple[str, bool, str], ...]:
    slowest, at_slowest = max((row.microseconds[OURS], row.label) for row in rows)
    lead, _, at_lead = _closest(rows, ("cronsim",))
    closest = f"at the closest, cronsim takes {lead:.2f} times our time, {at_lead}"
    return (
        (
            f"parsing {manner} takes at most 15 µs on every row",
            slowest <= 15,
            f"{number(slowest)} µs, {at_slowest}",
        ),
        (f"parsing {manner} is ahead of cronsim on every row", lead > 1, closest),
    )


def _closest(rows: list[Row], names: tuple[str, ...]) -> tuple[float, str, str]:
    """The smallest ratio to our time that any of some libraries reaches, with its name and row."""
    return min(
        (row.microseconds[name] / row.microseconds[OURS], name, row.label) for row in rows for name in names
    )
