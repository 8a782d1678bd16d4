"""HTTP requests that the operator named: the kind ``request``. Schedules and workflows give them an input, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from horae.errors import ConfigError, InvalidInputError
from horae.executor.context import Context
from horae.executor.http import HttpExecutor
from horae.executor.http_options import HttpRequest, check_request
from horae.executor.http_options import Settings as HttpSettings
from horae.executor.port import Executor

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class Settings(HttpSettings, Protocol):
    """The operator's settings for named requests."""

    @property
    def requests(self) -> str:
        """The file that names them."""


def read_requests(settings: Settings) -> dict[str, HttpRequest]:
    """The requests that the operator configured, by their names."""
    if not settings.requests:
        return {}
    try:
        found = msgspec.json.decode(Path(settings.requests).read_bytes(), type=dict[str, HttpRequest])
        for name, request in found.items():
            if not _NAME.fullmatch(name):
                raise _wrong(settings, f'names a request "{name[:100]}" with other characters than letters, digits, dots, dashes and underscores')  # fmt: skip
            if request.reports:
                raise _wrong(settings, f'names a request "{name}" that reports: a named request must answer with its result')  # fmt: skip
            check_request(request, settings)
    except OSError as error:
        raise _wrong(settings, f"cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise _wrong(settings, f"must be a file of requests as JSON: {error}") from None
    except InvalidInputError as error:
        raise _wrong(settings, f'names a request "{name}" whose {error.message}') from None
    return found


def _wrong(settings: Settings, reason: str) -> ConfigError:
    return ConfigError("HORAE_REQUESTS", settings.requests, reason)


class NamedRequestExecutor(Executor):
    """The kind ``request``: makes a request that the operator named. Its body says which run it is for, and has the input."""

    kind = "request"
    for_nodes = True

    def __init__(self, requests: Mapping[str, HttpRequest], http: HttpExecutor) -> None:
        self._requests = {f"{self.kind}:{name}": request for name, request in requests.items()}
        self._http = http

    def actions(self) -> Collection[str]:
        """``request:NAME`` for each request."""
        return self._requests.keys()

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the answer says
        """Make the request; the answer is the result, and an error its failure."""
        context.options = self._requests[context.action]
        return await self._http.run(context)
