"""How much memory this process holds."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

MEGABYTE = 1_000_000


def peak() -> float:
    """The most resident memory so far, in megabytes.

    Linux counts what the parent held before it became this program as well, unless ``/proc`` is asked.
    """
    return _proc("VmHWM") or _usage()


def present() -> float:
    """Resident memory, in megabytes; where the system does not tell, the most there was."""
    return _proc("VmRSS") or _usage()


def _proc(field: str) -> float | None:
    status = Path("/proc/self/status")
    found = (
        re.search(rf"^{field}:\s+(\d+) kB", status.read_text("utf-8"), re.MULTILINE)
        if status.exists()
        else None
    )
    return int(found[1]) * 1024 / MEGABYTE if found else None


def _usage() -> float:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == "darwin" else 1024) / MEGABYTE
