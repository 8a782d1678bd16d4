"""An error as a page says it: whole sentences that name a field by its label."""

from __future__ import annotations

import re

from horae.errors import HoraeError, InvalidInputError

LABELS = {
    "expires_at": "Until", "start": "From", "end": "To", "number": "How many slots to skip", "scopes": "May run",
    "url": "Address", "message_id": "Message id", "cron": "Cron expressions",
}  # fmt: skip
"""The labels of fields whose label is not their name."""


def error_text(error: HoraeError) -> str:
    """What went wrong, then what would have been right, each as a sentence."""
    message = error.message
    if isinstance(error, InvalidInputError) and (field := error.details["field"]) in LABELS:
        label = LABELS[field]
        message = f"{f'“{label}”' if ' ' in label else label} {error.details['reason']}"
    hint = re.sub("^such as ", "for example: ", error.hint or "")
    return " ".join(sentence(part) for part in (message, hint) if part)


def sentence(text: str) -> str:
    """A text with a capital and a full stop; a path such as ``spec.crons[0]`` at its beginning stays as it is written."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    if first.rstrip(":,").isalpha():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
