"""The clock of a process that another process sets: an offset in a file that both have in memory."""

from __future__ import annotations

import mmap
import struct
from datetime import datetime, timedelta
from pathlib import Path

from horae.clock import SystemClock

_OFFSET = struct.Struct("<q")


class ShiftedClock(SystemClock):
    """The machine's clock, off by as many milliseconds as its file says at the moment; the monotonic one is as it is."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(_OFFSET.pack(0))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), _OFFSET.size)

    def now(self) -> datetime:
        return super().now() + timedelta(milliseconds=_OFFSET.unpack_from(self._memory)[0])

    def set_offset(self, milliseconds: int) -> None:
        _OFFSET.pack_into(self._memory, 0, milliseconds)
