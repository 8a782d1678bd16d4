"""Tracebacks of actions: without Horae's own frames, and bounded."""

from __future__ import annotations

import traceback
from asyncio import events
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary
from types import CodeType, FrameType

from horae.executor.stored_output import storable, without_credentials

MAX_TRACEBACK_LENGTH = 8 * 1024
"""Bytes of a traceback that are kept: its end, with the frames next to the error."""
MAX_MESSAGE_LENGTH = 2 * 1024
"""Characters of the error's own message in it."""
_OWN_CODE = str(Path(__file__).parents[1])
_STEP = (events.__file__, "_run")
"""The function in which asyncio takes one step."""


def without_own_frames(error: BaseException) -> BaseException:
    """The error, with a traceback that begins in the code of the action; one that never got there has none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_CODE):
        trace = trace.tb_next
    return error.with_traceback(trace)


def traceback_text(error: BaseException) -> str | None:
    """The traceback of an error as it is kept; ``None`` if there is none, or it cannot be shown."""
    if error.__traceback__ is None:
        return None
    try:
        text = "".join(traceback.format_exception(error))
        message = "".join(traceback.format_exception_only(error))
    except Exception:  # what an error shows of itself is the action's code too
        return None
    if len(message) > MAX_MESSAGE_LENGTH and text.endswith(message):
        text = f"{text.removesuffix(message)}{message[:MAX_MESSAGE_LENGTH]}…\n"
    return _end_of(without_credentials(storable(text)))


Frame = tuple[CodeType, int]
"""Code, and the line that it is at."""


def frames_of(frame: FrameType | None) -> list[Frame]:
    """The stack of a frame as it is now, outermost first; quick, because its thread may go on."""
    frames: list[Frame] = []
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


def stack_text(frames: Sequence[Frame]) -> str:
    """The stack of a step of an event loop, in the form of a traceback: without what leads to the code of the action."""
    begun = [at for at, (code, _) in enumerate(frames) if (code.co_filename, code.co_name) == _STEP]
    step = frames[begun[-1] + 1 :] if begun else frames
    action = list(dropwhile(lambda each: each[0].co_filename.startswith(_OWN_CODE), step))
    shown = [FrameSummary(code.co_filename, line, code.co_name) for code, line in action or step]
    return _end_of(without_credentials(storable("".join(traceback.format_list(shown)))))


def _end_of(text: str) -> str:
    """As many whole lines from the end as are kept, with a note if lines were cut."""
    data = text.encode()
    if len(data) <= MAX_TRACEBACK_LENGTH:
        return text
    kept = data[-MAX_TRACEBACK_LENGTH:].partition(b"\n")[2]
    return f"… {len(data) - len(kept)} bytes before this are not kept\n{kept.decode('utf-8', 'replace')}"
