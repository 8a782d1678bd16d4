"""``horae check``: check settings, database, clock and migrations, and give advice."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
import typer
from rich.console import RenderableType

from horae.app import App
from horae.app.database_inspection import Health, inspect
from horae.clock import SystemClock
from horae.config import Config, setting_name
from horae.errors import ConfigError, HoraeError, MissingExtraError, StoreUnavailableError
from horae.executor.action_permissions import EVERY_CALLER, read_permissions
from horae.extras import import_extra
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.connection import settings
from horae.face.cli.printing import word
from horae.face.cli.tables import table
from horae.model import Node
from horae.spec import TZDATA_VERSION

MAX_OFF = 1000
"""How many milliseconds a node's clock may differ from the database's; beyond that the node decides nothing."""
WORTH_A_LOOK = 250
SHORTEST_SECRET = 32
_OF_CLIENTS = {"HORAE_URL", "HORAE_TOKEN"}

MAX_NAMED = 20
"""How many unreadable schedules are named at most."""

cli = group()


class Finding(msgspec.Struct, frozen=True):
    """The result of one check, with advice."""

    what: str
    level: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


@command(cli, "check", takes=["database", "as_json"])
async def check(given: Command) -> None:
    """Check the settings, the database, the clock and the migrations. Nothing is changed.

    [dim]Before a service starts, with the same environment; the exit status is 1 unless all is ok:[/dim]

      horae check && horae serve

      horae check --database postgresql://db/horae --json
    """
    findings = list(about_names(os.environ))
    try:
        config = settings(given.target)
    except ConfigError as error:
        findings.append(Finding("configuration", "fail", error.message, "set it right, or unset it"))
    else:
        findings += [*about_settings(config), *await _about_database(config)]
    given.show(findings, _table)
    if any(each.level != "ok" for each in findings):
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> RenderableType:
    rows = [(word(each.level), each.what, each.found, each.advice) for each in findings]
    return table("level", "what", "found~", "what to do~", rows=rows)


def about_names(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Settings with unknown names, which Horae ignores."""
    known = {setting_name(field) for field in Config.__struct_fields__} | _OF_CLIENTS
    for name in sorted(each for each in environment if each.startswith("HORAE_") and each not in known):
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {near[0]}?" if near else "unset it; docs/reference/settings.md has them all"
        yield Finding("configuration", "warn", f"there is no setting {name}", advice)


def about_settings(config: Config) -> Iterator[Finding]:
    """Whether a service can work with the settings."""
    yield Finding("configuration", "ok", "all settings can be read")
    yield _about_service(config)
    yield _about_secret_key(config)
    if config.commands:
        yield _about_commands(Path(config.commands))
    yield from _about_permissions(config)


def _about_service(config: Config) -> Finding:
    """The address and the authentication, which the service checks too when it starts."""
    try:
        for module in ("uvicorn", "jwt"):
            import_extra(module)
        importlib.import_module("horae.face.service.auth").check_start(config)
    except MissingExtraError as error:
        return Finding(
            "service", "ok", "not installed; programs can use this database without it", error.hint or ""
        )
    except ConfigError as error:
        return Finding("service", "fail", error.message, "horae serve does not start with this")
    ways = {
        "jwt_secret": "tokens (HS256)",
        "jwt_jwks": "tokens (RS256)",
        "tls_client_ca": "client certificates",
    }
    used = [name for setting, name in ways.items() if getattr(config, setting)]
    who = f"callers are known by {' and '.join(used)}" if used else "every caller on this machine is served"
    return Finding("service", "ok", f"{config.host}:{config.port}; {who}")


def _about_secret_key(config: Config) -> Finding:
    if not config.secret_key:
        return Finding(
            "secrets", "ok", "HORAE_SECRET_KEY is not set: HTTP actions have no headers and no secrets"
        )
    if len(config.secret_key) < SHORTEST_SECRET:
        found = f"HORAE_SECRET_KEY has {len(config.secret_key)} characters"
        return Finding("secrets", "warn", found, f"take {SHORTEST_SECRET} or more: openssl rand -hex 32")
    return Finding("secrets", "ok", "HORAE_SECRET_KEY is set")


def _about_permissions(config: Config) -> Iterator[Finding]:
    """Who may use which actions."""
    try:
        permissions = read_permissions(config)
    except ConfigError as error:
        yield Finding("permissions", "fail", error.message, "nothing starts with this")
        return
    for each in permissions.sentences():
        yield Finding("permissions", "ok", each)
    if EVERY_CALLER not in permissions.rules:
        others = "all other actions" if permissions.rules else "all actions"
        yield Finding("permissions", "ok", f"{others}: every caller")


def _about_commands(file: Path) -> Finding:
    try:
        commands = msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, object]])
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        advice = "a JSON object of commands by name; horae import crontab writes one"
        return Finding("commands", "fail", f"{file} cannot be read: {error}", advice)
    return Finding("commands", "ok", f"{len(commands)} in {file}")


async def _about_database(config: Config) -> list[Finding]:
    clock = SystemClock()
    try:
        health = await inspect(
            config.database_url, config.schema, lambda: int(clock.now().timestamp() * 1000)
        )
    except HoraeError as error:
        away = isinstance(error, StoreUnavailableError)
        advice = "is it running, and the address right?" if away else error.hint
        return [Finding("database", "fail", error.for_operator, advice or "")]
    findings = [*about_health(health), about_zones(health.nodes)]
    if health.exists and health.version == health.known:
        findings += await _about_schedules(config)
    return findings


async def _about_schedules(config: Config) -> list[Finding]:
    """Schedules whose rows cannot be read, because they were edited by hand or written by another version."""
    app = App(
        config.database_url, config=msgspec.structs.replace(config, action_permissions="")
    )  # it runs nothing
    try:
        await app.open()
        found = await app.schedules.unreadable(MAX_NAMED)
    finally:
        await app.close()
    advice = "update what it names, or delete it: horae schedules update, horae schedules delete"
    findings = []
    for each in found:
        name = f'"{each.id}" of "{each.owner}"' if each.owner else f'"{each.id}"'
        reasons = "; ".join(each.unreadable.values())
        findings.append(Finding("schedules", "fail", f"{name} cannot be read: {reasons}", advice))
    return findings or [Finding("schedules", "ok", "all can be read")]


def about_health(health: Health) -> Iterator[Finding]:
    """The database: whether it is reachable, migrated and durable, and agrees on the time."""
    if not health.exists:
        yield Finding(
            "database", "warn", "it does not exist yet", "horae migrate creates it, and so does horae serve"
        )
        return
    yield Finding("database", "ok", "reachable")
    yield _about_version(health)
    if not health.writable:
        yield Finding("database", "fail", "it is a standby, and takes no changes", "name the primary server")
    if health.durable is not None:
        advice = "" if health.durable else "after a power cut, what was started could be started again"
        yield Finding("durability", "ok" if health.durable else "fail", health.durability, advice)
    if health.clock_off is not None:
        yield _about_clock(health.clock_off)


def _about_version(health: Health) -> Finding:
    versions = f"the database is of version {health.version}, this Horae of {health.known}"
    if health.version > health.known:
        return Finding("migrations", "fail", versions, "use the Horae that migrated it, or a newer one")
    if health.version < health.known:
        return Finding("migrations", "warn", versions, "horae migrate; horae serve does it too")
    return Finding("migrations", "ok", f"up to date, version {health.version}")


def _about_clock(off: int) -> Finding:
    found = f"{abs(off)} ms {'behind' if off > 0 else 'ahead of'} the database's"
    if abs(off) > MAX_OFF:
        return Finding("clock", "fail", found, "keep it by NTP; a node takes the database's time meanwhile")
    if abs(off) > WORTH_A_LOOK:
        return Finding("clock", "warn", found, "keep it by NTP")
    return Finding("clock", "ok", found)


def about_zones(nodes: Iterable[Node]) -> Finding:
    """The time-zone database compared with those of living nodes: nodes with an older one decide nothing."""
    others = {node.tzdata for node in nodes if node.alive} - {TZDATA_VERSION}
    if not others:
        return Finding("time zones", "ok", f"tzdata {TZDATA_VERSION}")
    found = f"tzdata {TZDATA_VERSION} here, {', '.join(sorted(others))} elsewhere"
    return Finding(
        "time zones", "warn", found, "install the same tzdata everywhere; the older nodes decide nothing"
    )
