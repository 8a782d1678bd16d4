"""Templates, and how times, spans, numbers and statuses look on a page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import jinja2
import msgspec
from markupsafe import Markup

from horae import __version__
from horae.app.views import sentence_of
from horae.face.console.assets import asset_url
from horae.face.console.error_text import sentence
from horae.face.console.statuses import resolution, status_word, symbol
from horae.model import instant

if TYPE_CHECKING:
    from horae.face.console.page_request import Visit

SHOWN_BYTES = 64 * 1024
"""How much of a value a page shows; the API has the whole."""


def render(name: str, visit: Visit, /, **context: Any) -> str:  # noqa: ANN401 - what a template shows
    """Render a template, with times in the zone of the visit. Everything that it shows is escaped."""

    def when(moment: datetime | None, zone: str | None = None, **how: bool) -> Markup:
        shown_in = ZoneInfo(zone) if zone else visit.zone
        return moment_text(moment, shown_in, visit.zone, instant(visit.now), **how)

    template = _ENVIRONMENT.get_template(name)
    return template.render(visit=visit, when=when, seen=context.pop("seen", ""), **context)


def moment_text(
    moment: datetime | None,
    zone: ZoneInfo,
    viewer: ZoneInfo,
    now: datetime,
    *,
    date: bool = True,
    seconds: bool = False,
    exact: bool = False,
) -> Markup:
    """A moment in a zone, as short as is unambiguous, with UTC on hover; ``seconds`` always shows the seconds, ``exact`` the date.

    If the viewer's clock shows another time, both are shown with their zones, and the date instead of "tomorrow".
    """
    if moment is None:
        return Markup('<span class="none">–</span>')
    local, viewed = moment.astimezone(zone), moment.astimezone(viewer)
    clock = _clock(local, seconds=seconds)
    text = f"{_day(local, now.astimezone(zone))}, {clock}" if date else clock
    if exact or (date and local.utcoffset() != viewed.utcoffset()):
        text = exact_text(moment, zone, viewer, now, seconds=seconds)
    title = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC · {zone.key} {local:%z}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(moment), title, text)


def exact_text(
    moment: datetime, zone: ZoneInfo, viewer: ZoneInfo, now: datetime, *, seconds: bool = False
) -> str:
    """A moment in a zone with its date, as plain text; if the viewer's clock shows another time, both with their zones."""
    local, viewed = moment.astimezone(zone), moment.astimezone(viewer)
    text = f"{_date(local, now)}, {_clock(local, seconds=seconds)}"
    if local.utcoffset() == viewed.utcoffset():
        return text
    other_day = "" if local.date() == viewed.date() else f"{viewed:%a %d %b}, "
    return f"{text} {_city(zone)} ({other_day}{viewed:%H:%M} {_city(viewer)})"


def _clock(here: datetime, *, seconds: bool) -> str:
    return f"{here:%H:%M:%S}" if here.second or seconds else f"{here:%H:%M}"


_NEAR = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def _day(here: datetime, today: datetime) -> str:
    """A day: by its name if it is near today, with the year if that is another."""
    if near := _NEAR.get((here.date() - today.date()).days):
        return near
    return _date(here, today)


def _date(here: datetime, today: datetime) -> str:
    return f"{here:%a %d %b}" if here.year == today.year else f"{here:%a %d %b %Y}"


def _city(zone: ZoneInfo) -> str:
    """The short name of a zone: ``Berlin`` of ``Europe/Berlin``."""
    return zone.key.rpartition("/")[2].replace("_", " ")


def any_seconds(moments: Iterable[datetime]) -> bool:
    """Whether a moment is not at a full minute, so that a column shows the seconds of all."""
    return any(each.second for each in moments)


def iso(moment: datetime | None) -> str:
    """A moment as in the API."""
    return "" if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def span(length: timedelta | float | None) -> str:
    """A span in words that fit into a table."""
    if length is None:
        return "–"
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    parts, left = [], int(seconds)
    for unit, size_of in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size_of:
            parts.append(f"{left // size_of}{unit}")
            left %= size_of
    return " ".join(parts[:2])


def number(value: float) -> str:
    """A number with separators."""
    return f"{value:,}"


def plural(count: int, one: str, many: str = "") -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


HASHED = ("cron-", "launch-")
"""How the hashed ids of a workflow's schedules begin."""


def called(action: object, schedule_id: str) -> str:
    """The name of a schedule that pages show: its id, or the workflow if the id is a hash."""
    given = action.get("input") if isinstance(action, dict) else getattr(action, "input", None)
    if schedule_id.startswith(HASHED) and isinstance(given, dict) and given.get("workflow_id"):
        return f"{given['workflow_id']}{', by hand' if schedule_id.startswith('launch-') else ''}"
    return schedule_id


def as_json(value: object) -> str:
    """A value as JSON for people, cut where it is too long for a page."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    if len(text) <= SHOWN_BYTES:
        return text
    return f"{text[:SHOWN_BYTES]}\n… {len(text) - SHOWN_BYTES:,} more characters; the API has the whole"


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
    auto_reload=False, trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
_ENVIRONMENT.filters |= {
    "span": span, "json": as_json, "number": number, "plural": plural, "iso": iso, "called": called, "any_seconds": any_seconds,
    "sentence": sentence, "why": sentence_of, "resolution": resolution, "word": status_word,
}  # fmt: skip
_ENVIRONMENT.globals |= {"asset": asset_url, "symbol": symbol, "version": __version__}
