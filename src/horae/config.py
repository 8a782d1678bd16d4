"""The settings of a program: one frozen value, with the limits of everything.

Spans are milliseconds. Each has a name in the environment: ``HORAE_`` and its own name in capitals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal, get_origin

import msgspec

from horae.checked import input_error
from horae.errors import ConfigError
from horae.model import CatchUp, Limits, Overlap
from horae.spec.duration import DAY_MS

HOUR = 60 * 60 * 1000
MAX_PORT = 65_535


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How a node works. The defaults suit a program of one process and a service of several."""

    node_name: str = ""
    """The name of this node; if empty, it is derived from its host and process."""
    tick_ms: int = 1000
    """How long a change by another process may stay unnoticed if its notification is lost."""
    lookahead_ms: int = 60_000
    """The misfire grace of the registrar's schedules, and the time over which they spread late slots."""
    max_catchup_per_tick: int = 100
    """How many late slots of one schedule one decision handles."""
    max_buffer_size: int = 1000
    """How many automatic starts of one schedule may wait, and how many manual ones."""
    backfills_per_iteration: int = 10
    """How many slots of one backfill one decision handles."""
    concurrency: int = 1000
    """How many attempts this node runs at once; others wait, or run on other nodes."""
    max_crashes: int = 10
    """How many processes may die while running one run before it fails."""
    lease_ms: int = 10_000
    """How long the lease of a node lasts; it is renewed five times in that: on PostgreSQL, and on SQLite where there is no ``flock``."""
    hung_ms: int = 300_000
    """How long the event loop may not answer before the node no longer renews its lease, so that other nodes take over its runs."""
    housekeeping_ms: int = 3000
    """How often a node runs maintenance, which takes over the runs of dead nodes."""
    reconcile_ms: int = 300_000
    """How often maintenance searches for schedules that should have a next time and have none, or one that is more than a minute past."""
    prune_ms: int = 60_000
    """How often maintenance removes a part of what is past its retention from the ledger."""
    attention_ms: int = 60_000
    """How long a run waits for a node that can run it, before its schedule needs attention."""
    leave_ms: int = 0
    """How long a service that was asked to end still answers, while `/readyz` says so, for load balancers to notice."""
    drain_ms: int = 30_000
    """How long a stopping node waits for its running attempts; after that it stops them, and another node attempts those runs again."""
    terminate_ms: int = 5000
    """How long a terminated run may take to end; after that the ledger records it as ended."""
    retention_age_ms: int = 90 * DAY_MS
    """How long the ledger keeps ended runs, unstarted ranges, ended backfills and earlier versions."""
    retention_count: int = 10_000
    """How many ended runs of one schedule the ledger keeps."""
    default_overlap_policy: Overlap = Overlap.SKIP
    """The overlap policy of the registrar's schedules that name none."""
    default_catchup_policy: CatchUp = CatchUp.NONE
    """The catch-up policy of the registrar's schedules that name none."""
    default_jitter_ms: int = 0
    """The jitter of the registrar's schedules that name none."""
    database_url: str = "sqlite:///horae.db"
    """Where the service and the commands keep their schedules: ``sqlite:///path`` or ``postgresql://…``."""
    schema: str = "horae"
    """The schema of Horae's tables in a PostgreSQL database; it is created if the role may create it."""
    host: str = "127.0.0.1"
    """The address that the service listens on. Without authentication it must be a loopback address."""
    port: int = 8420
    """The port that the service listens on; 0 is any free one."""
    temporal_port: int | None = None
    """The port on which the service answers Temporal's schedule calls (gRPC), at the same address; 0 is any free port, unset disables it."""
    temporal_forward: str = ""
    """The Temporal cluster that gets the calls there that are not about schedules: ``host:port``, or ``https://host:port``."""
    temporal_forward_token: str = ""
    """The token with which schedules start workflows there; calls that are passed on keep the caller's own."""
    temporal_calls: int = 1000
    """How many of these gRPC calls may be under way at once; more are refused."""
    public_url: str = ""
    """The URL under which external workers reach the service to report; if empty, the address it listens on."""
    secret_key: str = ""
    """The key that encrypts header values and signing secrets of HTTP actions; without it they are refused."""
    jwt_secret: str = ""
    """The secret of tokens that are signed with HS256, at least 32 characters."""
    jwt_jwks: str = ""
    """The public keys of tokens that are signed with RS256: a file, or an address with https."""
    jwt_audience: str = "horae"
    """The audience that a token must name."""
    jwt_issuer: str = ""
    """The issuer that a token must name; empty accepts any issuer."""
    tls_certificate: str = ""
    """The file with the certificate of the service; with ``tls_key`` it serves https."""
    tls_key: str = ""
    """The file with the key of that certificate."""
    tls_client_ca: str = ""
    """The file with the CA that must have signed the certificates of clients: mutual TLS. The user is the common name."""
    tls_admins: tuple[str, ...] = ()
    """The common names of clients that see across users and may name another, as the scopes admin and service do."""
    http_allow: tuple[str, ...] = ("*",)
    """Where HTTP actions may go: hosts, ``host:port`` or ``*.domain``; ``*`` is any public address."""
    http_private: tuple[str, ...] = ()
    """The private networks that HTTP actions may reach, such as ``10.1.0.0/16``."""
    commands: str = ""
    """A JSON file with the commands that schedules may run, by name."""
    requests: str = ""
    """A JSON file with the HTTP requests that workflows and schedules may make, by name."""
    action_permissions: str = ""
    """Who may use which actions: a JSON object from actions to owners and scopes, or the file that has it."""
    timezones: tuple[str, ...] = ()
    """The time zones that the registrar accepts; if empty, all that are installed."""
    preview_limit: int = 1000
    """The maximum number of fire times in one answer."""
    body_limit: int = 1024 * 1024
    """The maximum number of bytes in the body of a request."""
    backfill_slots: int = 1_000_000
    """The maximum number of slots in one backfill."""
    open_backfills: int = 100
    """How many backfills of one schedule may be open at once."""
    batch_limit: int = 1000
    """The maximum number of schedules that one request creates."""
    schedules_per_user: int = 10_000
    """The maximum number of schedules of one user."""
    calendars_per_user: int = 1000
    """How many shared calendars one user may have, and how many may belong to no user."""
    grants_per_user: int = 20_000
    """How many grants that were not revoked one user may have."""
    graphs: str = ""
    """The LangGraph graphs that schedules may run: a JSON object from names to ``module:attribute``. A name makes ``langgraph:NAME``."""
    graph_execution_url: str = ""
    """The Horae service that executes graphs; if empty, this process does."""
    graph_execution_token: str = ""
    """The token for that service, with the scope service; if empty, one is made for each request with ``jwt_secret``."""
    accounts_required: bool = False
    """Whether only users with an account may run graphs; otherwise one without has an account of the same name, without a limit."""
    workflows_per_user: int = 10_000
    """How many versions of workflows one user may have."""
    workflow_bytes: int = 256 * 1024
    """The maximum number of bytes of a workflow's document."""
    workflow_nodes: int = 500
    """The maximum number of nodes of a workflow; it may have four times as many edges."""
    workflow_rounds: int = 10_000
    """The largest bound that a loop of a workflow may have."""
    workflow_steps: int = 10_000
    """How many nodes one run of a workflow may execute, including those in the rounds of loops."""
    workflow_concurrency: int = 100
    """How many nodes of one workflow run may execute at once."""
    node_output_bytes: int = 256 * 1024
    """The maximum number of bytes in the output of a node."""
    run_output_bytes: int = 8 * 1024 * 1024
    """The maximum number of bytes that the nodes of a workflow run store together."""
    expression_length: int = 2000
    """The maximum number of characters of an expression."""
    expression_ms: int = 1000
    """How long the evaluation of an expression may take."""
    jitter_limit_ms: int = DAY_MS
    """The maximum jitter of a schedule."""
    requests_per_second: int = 1000
    """How many requests of one user are answered each second."""
    output_limit: int = 64 * 1024
    """How many bytes of a command's output, and of an HTTP action's answer, are kept."""
    attempt_log_lines: int = 1000
    """How many lines that an action logs are kept with its attempt, the first half of them and the last; 0 keeps none."""
    attempt_log_bytes: int = 64 * 1024
    """How many bytes of these log lines are kept."""
    attempt_log_flush_ms: int = 1000
    """How often the log lines of a running attempt are written; a crash loses the unwritten ones."""
    loop_blocked_ms: int = 1000
    """How long the event loop may not answer until the log says what blocks it; 0 watches nothing."""
    flow_owner: str = ""
    """The owner of the flows of ``horae serve --flows``; if empty, they have no owner, and only operators see them."""
    flow_fixes: str = ""
    """A folder with later versions of flows, ``NAME_*.py``: the next one is deployed when a handler fails for a fault of its own."""
    flow_timeout_ms: int = 600_000
    """How long a run of a flow's handler may take, unless the handler says otherwise."""
    flow_wake_least_ms: int = 30_000
    """The earliest wake time of a consumer, counted from the commit of its run."""
    flow_wake_most_ms: int = DAY_MS
    """The latest wake time of a consumer, counted from the commit of its run."""
    flow_retention_age_ms: int = 30 * DAY_MS
    """How long consumed and skipped events and ended runs of flows are kept."""
    flow_retention_count: int = 100_000
    """How many consumed and skipped events, and how many ended runs, of one flow are kept."""
    log_format: Literal["console", "json"] = "console"
    """The format of the service's log: text for people, or one JSON object per line."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level of the log lines that the service writes."""
    tracing: bool = False
    """Whether runs become OpenTelemetry spans; OpenTelemetry's own variables (``OTEL_…``) say where they are sent."""

    def __repr__(self) -> str:
        """All settings but the secret ones."""
        shown = (
            f"{name}={'***' if name in SECRETS and getattr(self, name) else repr(getattr(self, name))}"
            for name in self.__struct_fields__
        )
        return f"Config({', '.join(shown)})"

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            least = 0 if name in _MAY_BE_ZERO else 1
            if isinstance(value, int) and not isinstance(value, bool) and value < least:
                raise ConfigError(setting_name(name), value, f"must be at least {least}")
        if not _SCHEMA_NAME.fullmatch(self.schema):
            raise ConfigError(setting_name("schema"), self.schema, "must be a name of a-z, 0-9 and _")
        if self.port > MAX_PORT:
            raise ConfigError(setting_name("port"), self.port, f"must be at most {MAX_PORT}")
        if self.lookahead_ms > HOUR:
            raise ConfigError(setting_name("lookahead_ms"), self.lookahead_ms, f"must be at most {HOUR}")

    @property
    def limits(self) -> Limits:
        """The limits of one decision."""
        return Limits(
            catch_up_per_pass=self.max_catchup_per_tick,
            max_buffer_size=self.max_buffer_size,
            backfills_per_pass=self.backfills_per_iteration,
            max_crashes=self.max_crashes,
        )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None
    ) -> Config:
        """The settings that the environment names, and the defaults of the others; ``options`` go before both."""
        environment = os.environ if environment is None else environment
        given: dict[str, Any] = dict(options or {})
        for field in msgspec.structs.fields(cls):
            text = environment.get(setting_name(field.name))
            if text is not None and field.name not in given:
                value = _listed(text) if field.type == tuple[str, ...] else text
                if get_origin(field.type) is Literal:
                    value = text.lower()
                try:
                    given[field.name] = msgspec.convert(value, field.type, strict=False)
                except msgspec.ValidationError as error:
                    shown = "***" if field.name in SECRETS else text
                    reason = input_error(error, field.type).details["reason"].removesuffix(", not a text")
                    reason = re.sub(r'^is ".*", and ', "", reason)  # the message says what it is
                    raise ConfigError(setting_name(field.name), shown, reason) from None
        return cls(**given)


_SCHEMA_NAME = re.compile("(?!pg_)[a-z_][a-z0-9_]{0,62}")
_MAY_BE_ZERO = {
    "attempt_log_lines",
    "default_jitter_ms",
    "drain_ms",
    "leave_ms",
    "lookahead_ms",
    "loop_blocked_ms",
    "port",
    "temporal_port",
}
SECRETS = {"database_url", "graph_execution_token", "jwt_secret", "secret_key", "temporal_forward_token"}
"""The settings that are never shown."""


def _listed(text: str) -> list[str]:
    """Split a list in the environment at its commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def setting_name(field: str) -> str:
    """The name of a setting in the environment."""
    return f"HORAE_{field.upper()}"


VIRTUAL_CLOCK_CONFIG = Config(
    tick_ms=DAY_MS, housekeeping_ms=HOUR, lease_ms=2 * HOUR, reconcile_ms=DAY_MS, prune_ms=DAY_MS, drain_ms=2**40
)  # fmt: skip
"""For a program on a virtual clock: no wake-up can be lost, and years pass in moments."""
