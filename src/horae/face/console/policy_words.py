"""The policies of a schedule in a few words each, for people who have not read about them."""

from __future__ import annotations

from typing import Any

_OVERLAP = {
    "skip": "skips a slot while another run goes on",
    "buffer_one": "lets one start wait while another run goes on",
    "buffer_all": "lets all starts wait for their turn",
    "cancel_other": "cancels the running one and starts the new one",
    "terminate_other": "terminates the running one and starts the new one",
    "allow_all": "runs any number at once",
}
_CATCH_UP = {
    "all": "makes up all late slots",
    "latest": "makes up the latest late slot",
    "spread": "spreads late slots over a while",
    "none": "makes up no late slots",
}


def policy_lines(policies: dict[str, Any]) -> list[tuple[str, str]]:
    """What happens when runs overlap, slots are late, or an action fails."""
    catch_up, retry, timeouts = policies["catch_up"], policies["retry"], policies["timeouts"]
    lines = [
        ("Overlap", _OVERLAP.get(policies["overlap"], policies["overlap"])),
        ("Late slots", _CATCH_UP.get(catch_up["mode"], catch_up["mode"])),
        ("After a failure", _retry(retry)),
        ("After a pause", "makes up what fell due" if policies["on_resume"] == "catch_up" else "skips what fell due"),
    ]  # fmt: skip
    if catch_up["window"]:
        lines[1] = (lines[1][0], f"{lines[1][1]}, up to {catch_up['window']} late")
    if timeouts["run"]:
        lines.append(("Time limit", f"an attempt may take {timeouts['run']}"))
    if policies["at_most_once"]:
        lines.append(("At most once", "a run whose process died is not attempted again"))
    return lines


def _retry(retry: dict[str, Any]) -> str:
    attempts = retry["attempts"]
    if attempts == 1:
        return "does not try again"
    number = "for ever" if attempts is None else f"up to {attempts} times in all"
    return f"tries {number}, first after {retry['initial_delay']}"
