"""Why a port cannot be listened on, in words that help."""

from __future__ import annotations

import errno
import socket

from horae.errors import ListenError


def cannot_listen(host: str, port: int, error: OSError, *, option: str = "--port") -> ListenError:
    """The error for a port that cannot be listened on; ``option`` is what chooses it."""
    place = f"{host}:{port}"
    setting = f"HORAE_{option.removeprefix('--').replace('-', '_').upper()}"
    other_port = f"choose another port with {option} or {setting}; 0 is any free one"
    other_host = "name an address of this machine with --host or HORAE_HOST, such as 127.0.0.1"
    if error.errno == errno.EADDRINUSE:
        return ListenError(
            place, "another program, perhaps another horae serve, listens there", hint=other_port
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return ListenError(place, "this user may not use that port", hint=other_port)
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return ListenError(place, "this machine has no such address", hint=other_host)
    return ListenError(place, error.strerror or str(error), hint=other_port)
