"""How statuses look: a word, a tone and a symbol, so that none is told by colour alone."""

from __future__ import annotations

from markupsafe import Markup

_WORDS = {"pending": "waiting", "retrying": "waits to retry", "timed_out": "timed out"}
"""The words of statuses whose word is not their name."""
_RESOLUTIONS = {
    "resolve it with retry": "try it again",
    "resolve it as approved": "say that it is approved",
    "resolve it as applied, not_applied or skip": "the change was made, was not made, or is to be skipped",
}
_PATHS = {
    "succeeded": "M3.5 8.5l3 3 6-7",
    "completed": "M3.5 8.5l3 3 6-7",
    "failed": "M4.5 4.5l7 7m0-7l-7 7",
    "timed_out": "M8 4.5V8l2.5 2M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
    "cancelled": "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.2 4.2l7.6 7.6",
    "terminated": "M4.5 4.5h7v7h-7z",
    "skipped": "M4 4.5l4 3.5-4 3.5m5-7v7",
    "missed": "M8 3.5v5M8 11.6v.2",
    "dropped": "M8 3v8m-3.2-3L8 11.2 11.2 8M4 13.5h8",
    "running": "M5.5 3.5l6.5 4.5-6.5 4.5z",
    "active": "M5.5 3.5l6.5 4.5-6.5 4.5z",
    "starting": "M5.5 3.5l6.5 4.5-6.5 4.5z",
    "pending": "M8 4.5V8l2.5 2M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
    "coming": "M8 4.5V8l2.5 2M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
    "retrying": "M12.5 6A5 5 0 1 0 13 9.5M12.8 2.8V6H9.6",
    "paused": "M5.5 4v8m5-8v8",
    "attention": "M8 2.2l6.2 11.3H1.8zM8 6.5v3.2M8 11.6v.2",
    "overview": "M2.5 13.5v-5h3v5zm4-0v-11h3v11zm4 0v-7.5h3v7.5z",
    "schedules": "M3 3.5h10v10H3zM3 6.5h10M5.5 2v3m5-3v3",
    "runs": "M2.5 4h7m-7 4h11m-11 4h5",
    "workflows": "M2.5 6h4v4h-4zM9.5 2.5h4v4h-4zM9.5 9.5h4v4h-4zM6.5 8h1.5V4.5h1.5M8 8v3.5h1.5",
    "flows": "M2.5 5.5c3-4 5 4 8 0 1-1.3 2-1.3 3-1M2.5 11c3-4 5 4 8 0 1-1.3 2-1.3 3-1",
    "grants": "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
    "alerts": "M8 2.2a4 4 0 0 0-4 4v3.3L2.8 11.5h10.4L12 9.5V6.2a4 4 0 0 0-4-4zM6.6 13.6h2.8",
    "documents": "M3.5 2.5h6l3 3v8h-9zM9.5 2.5v3h3M6 8.5h4M6 11h4",
    "calendars": "M3 3.5h10v10H3zM3 6.5h10M6 9h1m3 0h1m-5 2.5h1",
    "nodes": "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.1M5 11h.1",
    "search": "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zm3.3 7.8L14 14",
    "explain": "M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .7-1 1.4M8 12v.2",
    "new": "M8 3v10M3 8h10",
    "theme": "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
    "clock": "M8 4.5V8l2.5 2M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
    "out": "M9 3H3v10h6M7 8h7m-2.5-2.5L14 8l-2.5 2.5",
}


def status_word(status: str) -> str:
    """What a page calls a status."""
    return _WORDS.get(status, status)


def resolution(action: str | None) -> str:
    """What resolves a flow's issue, as the buttons of its page say it and not as a command does."""
    text = action or ""
    for command, words in _RESOLUTIONS.items():
        text = text.replace(command, words)
    return text


def symbol(name: str) -> Markup:
    """A symbol that says the same as the colour beside it; it has no text of its own."""
    path = _PATHS.get(name, "M8 7.5v1")
    return Markup(
        '<svg class="symbol" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false"><path d="{}"/></svg>'
    ).format(path)
