"""The service as a process: it listens, drives the app, and shuts down without losing anything."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import uvicorn

from horae.app import App
from horae.app.process_shutdown import (
    LEAVING,
    LEFT_BEHIND,
    awaited_attempts,
    exit_within,
    handle_signals,
    only_imported,
)
from horae.app.sync import SyncApp
from horae.config import Config
from horae.engine.observer import Observer
from horae.errors import ConfigError, HoraeError, InvalidInputError
from horae.face.registrar.registrar import Registrar
from horae.face.service import Service
from horae.face.service.auth import takes_tokens
from horae.face.service.connection_limit import Connections, Listener
from horae.face.service.http_protocol import HttpProtocol, in_pieces, tls_options
from horae.face.service.listen_errors import cannot_listen
from horae.face.service.log_observer import LogObserver
from horae.face.service.logging_setup import Log
from horae.face.service.metrics import Metrics
from horae.flow.auto_fix_folder import FolderFixer
from horae.flow.definition import Flow

_log = logging.getLogger("horae")
_GRACE = 10
"""Seconds that requests may take to finish when the service shuts down."""


def serve(
    config: Config,
    actions: str | None = None,
    options: Mapping[str, str] | None = None,
    flows: Sequence[str] = (),
) -> None:
    """Run the service until a signal ends it. ``actions`` names a module that registers actions, ``flows`` modules with flows;
    ``options`` are the options of the command by the settings that they give.
    """
    log = Log(config)
    log.take_over()
    try:
        _run(config, actions, flows, log)
    except Exception as raised:
        error = raised.given_by(options or {}) if isinstance(raised, ConfigError) else raised
        if config.log_format != "json":
            raise error from None  # the command prints it
        if isinstance(error, HoraeError):
            log.line.error("Horae cannot serve", sentence=error.for_operator)
        else:
            log.line.exception("Horae cannot serve", sentence=f"{type(error).__name__}: {error}")
        sys.exit(2)


def _run(config: Config, actions: str | None, modules: Sequence[str], log: Log) -> None:
    app_with_actions = None if actions is None else load_actions(actions)
    flows = [flow for module in modules for flow in load_flows(module)]
    log.collect()
    runner = asyncio.Runner()
    left: list[str] = []
    try:
        # A second signal cancels the service, which is no error: other nodes take over its runs.
        with contextlib.suppress(asyncio.CancelledError):
            runner.run(_serve(config, app_with_actions, flows, log, left))
    finally:
        # The loop waits for its tasks and the threads of its pool; Python waits for other threads and for exit handlers.
        exit_within(LEAVING)
        runner.close()
    if left:
        sys.exit(LEFT_BEHIND)


def load_actions(name: str) -> App:
    """The app of a module, for its actions: ``package.module``, or ``package.module:name`` if it is not called ``app``."""
    module_name, _, attribute = name.partition(":")
    hint = "a module with: app = horae.App(), and functions under @app.action(…)"
    module = _imported(module_name, "--app", hint)
    found = getattr(module, attribute or "app", None)
    if isinstance(found, SyncApp):
        found = found.app
    if not isinstance(found, App):
        raise InvalidInputError("--app", f"{module_name} has no App called {attribute or 'app'}", hint=hint)
    return found


def load_flows(name: str) -> list[Flow]:
    """The flows of a module, in the order in which it names them."""
    hint = 'a module with: flow = horae.flows.Flow("…")'
    found = [each for each in vars(_imported(name, "--flows", hint)).values() if isinstance(each, Flow)]
    if not found:
        raise InvalidInputError("--flows", f"{name} has no Flow", hint=hint)
    return list(dict.fromkeys(found))


def _imported(name: str, option: str, hint: str) -> ModuleType:
    # Find modules in the working directory, as `python -m` does.
    if os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        with only_imported():
            return importlib.import_module(name)
    except HoraeError:
        raise
    except Exception as error:
        reason = f"{name} cannot be imported: {type(error).__name__}: {error}"
        raise InvalidInputError(option, reason, hint=hint) from error


async def _serve(
    config: Config, actions: App | None, flows: Sequence[Flow], log: Log, left: list[str]
) -> None:
    """Serve until a signal ends it; add the attempts that did not stop to ``left``."""
    app = App(config.database_url, config=config)
    if actions is not None:
        app.adopt(actions)
    Registrar(app)
    metrics = Metrics()
    service = Service(app, config, metrics)  # first: it checks whether it may listen
    for observer in (LogObserver(log), metrics, *_traced(config)):
        app.watch(observer)
    connections = Connections()
    with _listening(config, connections) as listener:
        address = address_of(config, listener)
        app.use_builtin(config.public_url or address)
        try:
            async with app, _temporal(app, config, metrics):
                if config.flow_fixes:
                    app.flow_host.fixer = FolderFixer(Path(config.flow_fixes))
                for flow in flows:
                    await app.flows.deploy(flow, owner=config.flow_owner)
                _log.info("Horae listens on %s%s", address, "" if is_guarded(config) else _UNGUARDED)
                _log.info("The console, for people, is at %s/console", address)
                await _until_asked(app, _server(config, service, connections), listener)
        finally:
            left += app.left_behind
        _log.info("Horae has ended")


def _traced(config: Config) -> list[Observer]:
    if not config.tracing:
        return []
    from horae.face.service.tracing import TraceObserver, tracer_provider  # noqa: PLC0415 - an extra

    return [TraceObserver(tracer_provider())]


@contextlib.asynccontextmanager
async def _temporal(app: App, config: Config, metrics: Metrics) -> AsyncIterator[None]:
    """Answer Temporal's calls meanwhile, if a port is set for them."""
    if config.temporal_port is None:
        yield
        return
    from horae.face.temporal.server import TemporalServer  # noqa: PLC0415 - an extra

    server = TemporalServer(app, config, metrics.called)
    port = await server.start()
    _log.info("Horae answers Temporal's schedule calls on %s:%s", config.host, port)
    try:
        yield
    finally:
        await server.stop()


_UNGUARDED = ": without authentication it serves this machine only, as the user local"


def is_guarded(config: Config) -> bool:
    """Whether callers must authenticate."""
    return takes_tokens(config) or bool(config.tls_client_ca)


def _listening(config: Config, connections: Connections) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = Listener(connections, family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise cannot_listen(config.host, config.port, error) from None
    return listener


def address_of(config: Config, listener: socket.socket) -> str:
    """Where the service can be reached on this machine."""
    scheme = "https" if config.tls_certificate else "http"
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    """A server that leaves signals to us: uvicorn would end the process without waiting for running attempts."""

    def __init__(self, config: uvicorn.Config, before_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_shutdown = before_shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_shutdown()  # streams of open pages would keep it from ending
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(config: Config, service: Any, connections: Connections) -> uvicorn.Server:  # noqa: ANN401 - an ASGI application
    return _Server(
        uvicorn.Config(
            in_pieces(service),
            http=partial(HttpProtocol, connections),  # type: ignore[arg-type]  # it is called, and nothing else
            ws="none",  # there are no such routes, and loading the protocol takes a tenth of the start
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
            **tls_options(config),
        ),
        service.close_feed,
    )


def _end_on_signals(app: App, server: uvicorn.Server, limit: float) -> None:
    """On the first signal shut down gracefully, after load balancers have noticed; on the second at once."""
    main = asyncio.current_task()

    def ask() -> None:
        if app.leaving and main is not None:
            app.hurried = True
            main.cancel()
        if not app.leaving:
            _log.info("%s", awaited_attempts(app) or "Horae ends")
        app.leaving = True
        asyncio.get_running_loop().call_later(app.config.leave_ms / 1000, leave)

    def leave() -> None:
        server.should_exit = True

    handle_signals(ask, partial(exit_within, limit))


async def _until_asked(app: App, server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve requests and drive the app until a signal ends the server, or an error ends the app."""
    config = app.config
    wait_ms = config.leave_ms + config.drain_ms + config.terminate_ms
    _end_on_signals(app, server, _GRACE + wait_ms / 1000 + LEAVING)
    answering = asyncio.create_task(server.serve(sockets=[listener]), name="horae:answer")
    keeping_time = asyncio.create_task(app.serve(), name="horae:run")
    try:
        await asyncio.wait({answering, keeping_time}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await answering
    except asyncio.CancelledError:  # a second signal: the listener is closed next, so nothing may use it
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        raise
    keeping_time.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping_time
