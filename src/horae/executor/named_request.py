"""HTTP requests that the operator named: the kind ``request``. Schedules and workflows give only the input."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from horae.config import Config
from horae.errors import InvalidInputError
from horae.executor.attempt_context import Context
from horae.executor.http_destination import Destinations
from horae.executor.http_executor import HttpExecutor
from horae.executor.http_options import HttpRequest, check_request
from horae.executor.operator_files import read_named
from horae.executor.port import Executor


def read_requests(config: Config) -> dict[str, HttpRequest]:
    """The requests that the operator configured, by their names."""
    destinations = Destinations(config.http_allow, config.http_private)

    def fault(request: HttpRequest) -> str:
        if request.reports:
            return "that reports: a named request must answer with its result"
        try:
            check_request(request, destinations)
        except InvalidInputError as error:
            return f"whose {error.message}"
        return ""

    return read_named("HORAE_REQUESTS", config.requests, HttpRequest, "request", fault)


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
        """Make the request; the answer is the result, an error its failure."""
        context.options = self._requests[context.action]
        return await self._http.run(context)
