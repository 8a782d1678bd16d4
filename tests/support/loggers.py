"""The loggers of a test's process: a log of the service takes all of them over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from horae.face.service.logging_setup import CHATTY

NAMES = (None, "jobs", "horae", "uvicorn.error", "uvicorn.access", *CHATTY)


@contextmanager
def loggers_as_before() -> Iterator[None]:
    """Afterwards, loggers are as they were."""
    kept = [
        (each, each.handlers, each.propagate, each.level, each.disabled)
        for each in map(logging.getLogger, NAMES)
    ]
    try:
        yield
    finally:
        for logger, handlers, propagate, level, disabled in kept:
            logger.handlers, logger.propagate, logger.disabled = handlers, propagate, disabled
            logger.setLevel(level)
