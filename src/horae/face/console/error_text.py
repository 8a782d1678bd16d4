"""An error as a page says it: whole sentences that name a field by its label."""

from __future__ import annotations

import re

from horae.errors import HoraeError, InvalidInputError, InvalidSpecError

LABELS = {
    "expires_at": "Until", "start": "From", "end": "To", "number": "How many slots to skip", "scopes": "May run",
    "url": "Address", "message_id": "Message id", "cron": "Cron expressions",
}  # fmt: skip
"""The labels of fields whose label is not their name."""
FORM_LABELS = {
    "crons": "Cron expressions", "intervals.every": "Every", "intervals.phase": "Shifted by", "times": "At",
    "calendars.hour": "Time of day", "calendars.minute": "Time of day", "calendars.second": "Time of day",
    "calendars.day_of_month": "Day of the month", "timezone": "Time zone", "jitter": "Jitter", "exclude": "Except calendars",
    "policies.timeouts.run": "Time limit of an attempt", "policies.retry.attempts": "Attempts", "dates": "Dates",
}  # fmt: skip
"""The labels of fields for parts of a document, by the paths of these without numbers."""


def error_text(error: HoraeError, *, of_document: bool = False) -> str:
    """What is wrong and the hint, each as a sentence. In a document that a person wrote, parts keep their paths."""
    message = error.message
    path, reason = _path_of(error), error.details.get("reason", "")
    has_field = not of_document or path.startswith("policies.")
    label = LABELS.get(path) or (FORM_LABELS.get(path, "") if has_field else "")
    if label and reason[:1].isupper():  # it names its subject itself
        message = reason
    elif label:
        named = f"“{label}”" if " " in label else label
        message = f"{named}{':' if reason.startswith(chr(34)) else ''} {reason}"
    hint = re.sub("^such as ", "for example: ", error.hint or "")
    return " ".join(sentence(part) for part in (message, hint) if part)


def _path_of(error: HoraeError) -> str:
    """The path of what is wrong, without numbers; of a shared calendar, without its name. Empty if the error has none."""
    if isinstance(error, InvalidInputError | InvalidSpecError):
        path = re.sub(r"\[\d+\]", "", str(error.details.get("field") or error.details.get("element") or ""))
        return "dates" if path.endswith(".dates") else path
    return ""


def sentence(text: str) -> str:
    """A text with a capital and a full stop; a path such as ``spec.crons[0]`` at its beginning stays as it is written."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if first.rstrip(":,").isalpha():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
