"""Every error Horae raises, in one tree. Those that are not drawn derive from ``HoraeError`` directly.

::

    HoraeError
    ├── SpecError
    │   ├── InvalidSpecError
    │   │   └── SpecTooCostlyError
    │   ├── InvalidCronExpressionError
    │   ├── FieldParseError
    │   ├── UnknownTimezoneError
    │   └── UnknownCalendarError
    ├── GrantError
    │   ├── GrantNotFoundError
    │   ├── GrantRevokedError
    │   ├── GrantExpiredError
    │   └── GrantScopeError
    ├── GraphError
    │   └── GraphUnavailableError
    ├── NotStartedError
    │   └── LeftToOtherNodeError
    └── TaskTryDeserializeError
        ├── TaskMissingFieldError
        ├── TaskInvalidTypeError
        ├── TaskInvalidValueError
        └── TaskInvalidStructureError

Each carries a ``message`` for people, ``details`` for programs, and where one is known a ``hint``:
what would have been right.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

MAX_SHOWN_LENGTH = 1000
MAX_OWNERS_SHOWN = 10


class HoraeError(Exception):
    """The base of every error that Horae raises on purpose."""

    hint: str | None = None
    """What would have been right. A class whose hint never varies sets it here."""

    def __init__(
        self, message: str, details: Mapping[str, Any] | None = None, *, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        if hint is not None:
            self.hint = hint
        self.show_hint()

    @property
    def for_operator(self) -> str:
        """The message for the log and the operator's terminal."""
        return self.message

    def show_hint(self) -> None:
        """Let tracebacks show the hint; what shows an error otherwise reads ``hint``."""
        if self.hint is not None:
            self.add_note(f"hint: {self.hint}")

    def hint_handed_on(self) -> str | None:
        """The hint, for an error that this one causes: a traceback of both shows it once, at the end."""
        if self.hint is not None:
            self.__notes__.remove(f"hint: {self.hint}")
        return self.hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, whatever arguments the constructor takes."""
        return _restored, (type(self), self.__dict__)


def _restored(kind: type[HoraeError], attributes: dict[str, Any]) -> HoraeError:
    error = kind.__new__(kind)
    Exception.__init__(error, attributes["message"])
    error.__dict__.update(attributes)
    if notes := attributes.get("__notes__"):  # a copy has its own
        error.__notes__ = [*notes]
    return error


def _shown(value: object) -> str:
    """A value as messages show it: at most a line or two, without raising an error."""
    try:
        text = str(value)
    except ValueError:  # an integer of thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


class _NamedError(HoraeError):
    """The base of errors about one thing that is named in their message and in one field of their details."""

    sentence: str
    field: str

    def __init__(self, name: str, *, hint: str | None = None) -> None:
        super().__init__(self.sentence.format(_shown(name)), {self.field: name}, hint=hint)


def did_you_mean(given: object, known: Iterable[str], *, limit: int = 1) -> str | None:
    """A hint with the known names most similar to a wrong one; ``None`` if none is similar."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(_shown(given)[:100].lower(), list(by_lower), n=limit, cutoff=0.6)
    return f"did you mean {' or '.join(by_lower[each] for each in near)}?" if near else None


class SpecError(HoraeError):
    """A spec is wrong; nothing was stored."""


class FieldParseError(SpecError):
    """One field of a cron expression or calendar is wrong.

    ``start`` and ``length`` locate the offending characters within the field's own text.
    """

    def __init__(
        self,
        field: str,
        value: object,
        reason: str,
        *,
        start: int = 0,
        length: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{field} field {reason}", {"fieldValue": value, "fieldName": field}, hint=hint)
        self.field = field
        self.value = value
        self.reason = reason
        self.start = start
        self.length = len(_shown(value)) if length is None else length


class InvalidCronExpressionError(SpecError):
    """A cron expression is wrong. ``position`` and ``length`` locate the fault in the expression."""

    def __init__(
        self,
        expression: object,
        field: str,
        reason: str,
        *,
        position: int = 0,
        length: int = 0,
        hint: str | None = None,
    ) -> None:
        super().__init__(
            f'Invalid cron expression "{_shown(expression)}": {field} field {reason}',
            {"expression": expression, "field": field, "reason": reason},
            hint=hint,
        )
        self.position = position
        self.length = length


_PREDICATES = ("is ", "are ", "has ", "must ", "may ", "cannot ", "needs ", "goes ")
"""The beginnings of reasons that make a sentence with the name of the wrong element."""


class InvalidSpecError(SpecError):
    """A spec document is wrong.

    ``details`` name the element by its path (``calendars[0].hour``), its text, the reason, and the
    position of the offending character in that text (from 0; absent when the fault is not in a text).
    """

    def __init__(
        self,
        element: str,
        reason: str,
        *,
        text: object = None,
        position: int | None = None,
        hint: str | None = None,
    ) -> None:
        where = "" if position is None else f" (character {position + 1})"
        details: dict[str, Any] = {"element": element, "text": text, "reason": reason}
        if position is not None:
            details["position"] = position
        colon = "" if reason.startswith(_PREDICATES) else ":"
        super().__init__(f"{element}{colon} {reason}{where}", details, hint=hint)


class SpecTooCostlyError(InvalidSpecError):
    """Finding the times of a spec takes more work than a spec may cause; ``details`` name the part that costs most."""


class UnknownTimezoneError(SpecError):
    """The zone is not in the installed time-zone database, or not among the allowed ones."""

    def __init__(self, timezone: object, *, hint: str | None = None) -> None:
        super().__init__(f'Unknown time zone "{_shown(timezone)[:100]}"', {"timezone": timezone}, hint=hint)


class UnknownCalendarError(SpecError):
    """A spec excludes a shared calendar that was not defined."""

    def __init__(self, calendar: str, defined: Iterable[str]) -> None:
        names = sorted(defined)
        near, known = did_you_mean(calendar, names), ", ".join(names) or "none"
        hint = f"{near} Defined: {known}" if near else f"defined: {known}"
        super().__init__(f'Unknown calendar "{calendar}"', {"calendar": calendar}, hint=hint)


class ScheduleNotFoundError(_NamedError):
    """No schedule has this id."""

    sentence, field = 'There is no schedule "{}"', "scheduleId"


class ScheduleAmbiguousError(HoraeError):
    """Several owners have a schedule with this id, and the caller, who sees all owners, named none; nothing was changed."""

    def __init__(self, schedule_id: str, owners: Sequence[str]) -> None:
        named = [f'"{each}"' if each else "one without an owner" for each in owners[:MAX_OWNERS_SHOWN]]
        more = " and others" if len(owners) > MAX_OWNERS_SHOWN else ""
        super().__init__(
            f'There are several schedules "{schedule_id}", of different owners: {", ".join(named)}{more}',
            {"scheduleId": schedule_id, "owners": list(owners[:MAX_OWNERS_SHOWN])},
            hint='name the owner; "" means schedules without one',
        )


class ScheduleExistsError(_NamedError):
    """The id of a new schedule is taken."""

    sentence, field = 'There is a schedule "{}" already', "scheduleId"
    hint = "choose another id, or delete that one first"


class DefinitionConflictError(HoraeError):
    """A program defines a schedule with the id of one that it does not manage, which was not changed."""

    def __init__(self, schedule_id: str, managed_by: str, label: str) -> None:
        other = f'is managed by "{managed_by}"' if managed_by else "was not defined by a program"
        super().__init__(
            f'There is a schedule "{schedule_id}" already, which {other}, and not by this program, "{label}"',
            {"scheduleId": schedule_id, "managedBy": managed_by, "label": label},
            hint=f"choose another id; or hand it over: horae schedules update {schedule_id} --managed-by {label}",
        )


class ScheduleUnreadableError(HoraeError):
    """Fields of a stored schedule cannot be read, because its row was changed by hand or by another version; nothing was changed.

    ``details`` have the ``fields``, each with what is wrong.
    """

    def __init__(self, schedule_id: str, fields: Mapping[str, str]) -> None:
        given = ["paused" if each == "state" else each for each in fields]
        super().__init__(
            f'The schedule "{schedule_id}" cannot be read: {"; ".join(fields.values())}',
            {"scheduleId": schedule_id, "fields": dict(fields)},
            hint=f"update it with {' and '.join(given)}, or delete it",
        )


class WorkflowNotFoundError(HoraeError):
    """No workflow has this id and version."""

    def __init__(self, workflow_id: str, version: int | None = None) -> None:
        which = "" if version is None else f" of version {version}"
        super().__init__(
            f"There is no workflow {_shown(workflow_id)}{which}",
            {"workflowId": workflow_id, "version": version},
        )


class WorkflowConflictError(HoraeError):
    """Another document is deployed under this version; versions never change."""

    def __init__(self, workflow_id: str, version: int) -> None:
        super().__init__(
            f"Version {version} of the workflow {_shown(workflow_id)} is deployed already, with another document",
            {"workflowId": workflow_id, "version": version},
            hint="deploy it under the next version",
        )


class InvalidWorkflowError(HoraeError, ValueError):
    """A workflow's document is wrong. ``details["faults"]`` names every wrong node and edge, and why; nothing was stored."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        (where, reason), *more = faults
        others = f", and {len(more)} more" if more else ""
        listed = [{"where": each, "reason": why} for each, why in faults[:100]]
        super().__init__(f"The workflow cannot be deployed: {where} {reason}{others}", {"faults": listed})


class ExpressionError(HoraeError, ValueError):
    """An expression cannot be compiled or evaluated."""

    def __init__(self, expression: str, reason: str) -> None:
        super().__init__(
            f"The expression {expression[:200]!r} has no value: {reason}",
            {"expression": expression[:200], "reason": reason},
        )


class NodeFailedError(HoraeError):
    """Nodes of a workflow failed, and no edge handles that, so the run fails."""

    def __init__(self, failures: Sequence[str]) -> None:
        first, *more = failures
        others = f" (and {len(more)} more)" if more else ""
        super().__init__(f"{first}{others}", {"failures": list(failures[:100])})


_COMMANDS = '{"backup": {"argv": ["/usr/bin/backup", "--all"]}}'


class UnknownActionError(HoraeError):
    """No action of this name was registered in this program."""

    def __init__(self, action: str, known: list[str]) -> None:
        meant = f"{near} " if (near := did_you_mean(action, known)) else ""
        names = ", ".join(sorted(known)) or "none"
        hint = f"{meant}registered are: {names}; a program that registers it must be running"
        if action.startswith("command:"):
            hint = f"{meant}the operator names commands in the file of HORAE_COMMANDS, a JSON object such as {_COMMANDS}; registered are: {names}"
        super().__init__(f'There is no action "{_shown(action)}"', {"action": action}, hint=hint)


class ActionNotAllowedError(HoraeError):
    """The operator does not let this owner use the action; nothing was stored or started."""

    hint = "ask the operator to allow it in HORAE_ACTION_PERMISSIONS, or use another action"

    def __init__(self, action: str, owner: str) -> None:
        details = {"action": action, "owner": owner}
        super().__init__(f'The owner "{owner}" may not use the action "{action}"', details)


class InvalidActionError(HoraeError):
    """A function cannot be registered as an action: its name is taken, or it cannot be called."""

    def __init__(self, action: str, reason: str, place: str = "", *, hint: str | None = None) -> None:
        where = f": {place}" if place else ""
        details = {"action": action, "reason": reason, "place": place}
        super().__init__(f'The action "{_shown(action)}" {reason}{where}', details, hint=hint)


class RunNotFoundError(_NamedError):
    """No run has this id."""

    sentence, field = 'There is no run "{}"', "runId"


class GrantError(_NamedError):
    """A grant does not allow what was asked; nothing was run or charged."""

    sentence, field = 'The grant "{}" does not hold', "grantId"


class GrantNotFoundError(GrantError):
    """No grant has this id, or another user has it."""

    sentence = 'There is no grant "{}"'


class GrantRevokedError(GrantError):
    """The grant was revoked. That is final: another grant must take its place."""

    sentence = 'The grant "{}" was revoked'


class GrantExpiredError(GrantError):
    """The time of the grant is over; it can be renewed."""

    sentence = 'The grant "{}" has expired'


class GrantScopeError(GrantError):
    """The grant is for other graphs."""

    sentence = 'The grant "{}" is for other graphs'


class NoCreditError(HoraeError):
    """An account has no credit left, or a user has no account where accounts are required; nothing was run or charged."""

    def __init__(self, user_id: str, reason: str = "has no credit left") -> None:
        super().__init__(f'The account of "{_shown(user_id)}" {reason}', {"userId": user_id})


class ExecutionInProgressError(HoraeError):
    """The executing side is working on this request, or the lease of its execution has not ended; ask again later."""

    def __init__(self, seconds: float) -> None:
        wait = max(1, int(seconds + 0.999))
        super().__init__(
            "This request is being executed", {"retryAfter": wait}, hint=f"ask again in {wait} s"
        )


class IdempotencyMismatchError(_NamedError):
    """An idempotency key was used before, for another graph or another input; nothing was run."""

    sentence, field = 'The key "{}" was used for another graph or input', "key"


class GraphError(HoraeError):
    """The execution of a graph failed. ``code`` is one of the reasons of the ledger."""

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message, {"code": code})
        self.code = code


class GraphUnavailableError(GraphError):
    """There is no such graph, or it cannot be loaded."""

    def __init__(self, graph_id: str, reason: str) -> None:
        super().__init__(f'The graph "{_shown(graph_id)}" {reason}', "graph_unavailable")


class RerunRefusedError(HoraeError):
    """A run cannot be run again; ``details`` have the reason."""

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(
            f'The run "{run_id}" cannot be run again: {reason}', {"runId": run_id, "reason": reason}
        )


class BackfillNotFoundError(_NamedError):
    """No backfill has this id."""

    sentence, field = 'There is no backfill "{}"', "backfillId"


class BackfillLimitError(HoraeError):
    """A backfill has more slots than the schedule's ``backfill_limit`` allows."""

    def __init__(self, schedule_id: str, slots: int, limit: int) -> None:
        super().__init__(
            f'The backfill of "{schedule_id}" has {slots} slots, and its limit is {limit}',
            {"scheduleId": schedule_id, "slots": slots, "limit": limit},
            hint="choose a shorter range, or raise the schedule's backfill_limit",
        )


class ConflictTokenMismatchError(HoraeError):
    """Another caller changed the schedule since it was read; nothing was changed."""

    def __init__(self, schedule_id: str, given: int, current: int) -> None:
        super().__init__(
            f'The schedule "{schedule_id}" was changed meanwhile: its version is {current}, not {given}',
            {"scheduleId": schedule_id, "given": given, "current": current},
            hint="read it again, and apply the change to the current version",
        )


class InvalidInputError(HoraeError, ValueError):
    """A given value is not valid; nothing was stored."""

    def __init__(self, field: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field} {reason}", {"field": field, "reason": reason}, hint=hint)


class ConfigError(HoraeError):
    """A setting is wrong; nothing was started. ``option`` is the command option that set it, if one did."""

    def __init__(self, setting: str, value: object, reason: str, *, option: str = "") -> None:
        super().__init__(
            f"{option or f'The setting {setting}'} {reason}, and it is {_shown(value)!r}",
            {"setting": option or setting, "value": value, "reason": reason},
        )

    def given_by(self, options: Mapping[str, str]) -> ConfigError:
        """The same error, named after the command option that set the setting, if ``options`` has one."""
        option = options.get(self.details["setting"], "")
        return ConfigError(**self.details, option=option) if option else self


class ListenError(HoraeError):
    """The service cannot listen on its address; nothing was started."""

    def __init__(self, address: str, reason: str, *, hint: str) -> None:
        super().__init__(
            f"Cannot listen on {_shown(address)}: {reason}", {"address": address, "reason": reason}, hint=hint
        )


class NotStartedError(HoraeError):
    """Raise this in an action that cannot begin now and has not begun: it is started again, up to ``start_attempts`` times.

    With ``permanent`` it is not started again.
    """

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason, {"permanent": permanent})
        self.permanent = permanent


class LeftToOtherNodeError(NotStartedError):
    """Raised by an executor before it began: this node lacks what another node has. The run is released to that node at once."""

    def __init__(self, actions: Sequence[str]) -> None:
        super().__init__(
            f"another node has what this one lacks: {', '.join(_shown(each) for each in actions)}"
        )
        self.details["actions"] = list(actions)


class NotAdmittedError(HoraeError):
    """Raised by an executor before it began: the run must not happen. The run is skipped with the reason, and not attempted again."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, {"reason": reason})
        self.reason = reason


class HttpStatusError(HoraeError):
    """A request of the action ``http`` got an answer whose status is not a success."""

    def __init__(self, status: int, answer: str) -> None:
        said = f": {answer}" if answer else ""
        super().__init__(f"The answer had the status {status}{said}", {"status": status, "answer": answer})


class HttpAnswerError(HoraeError):
    """The answer to a request of the action ``http`` was abandoned: it has too many interim answers, headers or pieces."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The answer was given up: {reason}", {"reason": reason})


class DestinationRefusedError(HoraeError):
    """A request of the action ``http`` had a destination that the operator does not allow; nothing was sent."""

    def __init__(self, destination: str, reason: str) -> None:
        super().__init__(
            f"The request may not go to {_shown(destination)}: {reason}",
            {"destination": destination, "reason": reason},
            hint="the operator decides with HORAE_HTTP_ALLOW and HORAE_HTTP_PRIVATE",
        )


class CommandFailedError(HoraeError):
    """A command ended with an exit status that is not 0. ``details`` have it, and the end of what it wrote to stderr."""

    def __init__(self, command: str, ending: str, code: int, stderr: str) -> None:
        said = f": {stderr}" if stderr else ""
        super().__init__(
            f'The command "{command}" {ending}{said}', {"command": command, "exit": code, "stderr": stderr}
        )


class HandOffFailedError(HoraeError):
    """Work that was handed to another engine failed there."""

    def __init__(self, engine: str, task: str, reason: str) -> None:
        super().__init__(
            f"{engine} says that {_shown(task)} failed: {reason}",
            {"engine": engine, "task": task, "reason": reason},
        )


class NodeNameTakenError(_NamedError):
    """Another living node has this node's name."""

    sentence, field = 'Another living node is called "{}"', "name"
    hint = "give each node its own HORAE_NODE_NAME, or leave it empty to have one generated"


class DatabaseHeldError(HoraeError):
    """Another node holds the SQLite database, on a platform where only one may at a time."""

    hint = (
        "on this platform one program at a time keeps time with an SQLite file: end the other one, "
        "or start this one after that time if the other has crashed; PostgreSQL has no such limit"
    )

    def __init__(self, node: str, until: datetime) -> None:
        time = f"{until:%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f'The node "{node}" holds the database until {time}', {"node": node, "until": time})


class ClockOffError(HoraeError):
    """This machine's clock is off the database's; nothing was decided by it."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(
            f"The clock is {abs(milliseconds)} ms off the database's",
            {"milliseconds": milliseconds},
            hint="a running node corrects itself by the database's time; if this repeats, check the machine's clock",
        )


class AppNotOpenError(HoraeError):
    """An operation was called on an app that is not open, or no longer open."""

    hint = "call operations within: async with app"

    def __init__(self) -> None:
        super().__init__("The app is not open")


class StoreUnavailableError(HoraeError):
    """The database cannot be reached now; changes under way may or may not have been written.

    ``reason`` is the driver's message, and may name hosts and paths: only logs, tracebacks and the operator's terminal
    show it. The message omits it, because answers and the failures of runs show the message; only that of opening an app has it.
    """

    hint = "a running scheduler tries again by itself; nothing is decided meanwhile, and nothing lost"

    def __init__(self, reason: str, blocked: str = "", *, opening: str | None = None) -> None:
        """``opening`` is the hint for a program that opens the database: it is told the reason at once."""
        message = "The database cannot be reached"
        if blocked:
            message = "The event loop of this process was blocked, and what it asked of the database failed meanwhile"
        super().__init__(message if opening is None else f"{message}: {reason}", hint=opening)
        self.reason = reason
        self.blocked = blocked
        """How the event loop was blocked meanwhile, which is then the cause; empty if it was not."""
        if opening is None:
            self.add_note(f"{blocked}: {reason}" if blocked else reason)

    @property
    def for_operator(self) -> str:
        """The message with the reason."""
        if self.blocked:
            return f"{self.blocked}; what it asked of the database failed meanwhile: {self.reason}"
        return self.message if self.message.endswith(self.reason) else f"{self.message}: {self.reason}"


class DatabaseNotSetUpError(_NamedError):
    """There is no Horae database at the address, and this command does not create one."""

    sentence, field = "There is no Horae database at {}", "database"
    hint = (
        "is this the folder of your program? If not, go there, or name its database with --database. "
        "horae migrate sets up a new one, and so does horae serve; --url names a server"
    )


class DatabaseVersionError(HoraeError):
    """The database was written by a newer Horae, or by an older one and this command does not migrate it."""

    def __init__(self, database: str, version: int, known: int) -> None:
        older = "run horae migrate to bring it to this version; horae serve does it too"
        super().__init__(
            f"The database is of version {version}, and this Horae knows up to {known}",
            {"database": database, "version": version, "known": known},
            hint="use the Horae that wrote it, or a newer one" if version > known else older,
        )


class DatabaseSetupError(HoraeError):
    """The database role may not create or use Horae's schema; the hint says what to run."""

    def __init__(self, role: str, schema: str, reason: str, *, schema_exists: bool) -> None:
        if schema_exists:
            super().__init__(
                f'The role "{role}" may not use the schema "{schema}" of the database: {reason}',
                {"role": role, "schema": schema},
                hint="run horae migrate as the owner of the schema, and then: "
                f"GRANT USAGE ON SCHEMA {schema} TO {role}; "
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; "
                f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
            )
            return
        super().__init__(
            f'The role "{role}" may not create the schema "{schema}" in the database: {reason}',
            {"role": role, "schema": schema},
            hint=f"let a role that may run: CREATE SCHEMA {schema} AUTHORIZATION {role}; "
            "or name another schema with HORAE_SCHEMA",
        )


class ConnectionPoolerError(HoraeError):
    """A pooler between Horae and the database shares sessions between clients, as PgBouncer does in transaction mode."""

    def __init__(self) -> None:
        super().__init__(
            "The database is behind a connection pooler that shares sessions between clients, "
            "and Horae needs sessions of its own: for LISTEN, prepared statements and settings",
            hint="name the address of PostgreSQL itself, or let PgBouncer give Horae's user or database "
            "sessions of its own (pool_mode = session)",
        )


class DatabaseUrlError(HoraeError):
    """The address of the database cannot be read."""

    def __init__(self, database: str) -> None:
        shown = re.sub(r"//[^/]*@", "//…@", _shown(database))  # it may contain a password
        super().__init__(
            f'Cannot read the database address "{shown}"',
            {"database": shown},
            hint="sqlite:///horae.db for a file, postgresql://… for a server, :memory: for a test",
        )


class NaiveTimeError(HoraeError, ValueError):
    """A time without a zone was given where an instant is needed: a datetime, or a text for a ``field``."""

    def __init__(self, moment: object, field: str = "") -> None:
        message, details = f"{moment} has no time zone", {"time": str(moment)}
        hint = "give an aware datetime, such as datetime(2026, 3, 8, tzinfo=UTC)"
        if isinstance(moment, str):
            hint = (
                "write it with its offset from UTC, such as 2026-03-08T09:00:00Z or 2026-03-08T10:00:00+01:00"
            )
        if field:
            message, details = f'{field} is "{moment}", which has no offset', details | {"field": field}
        super().__init__(message, details, hint=hint)


class RegistrationsNotArrayError(HoraeError):
    """The registrations of a declarative scheduler are not a list."""

    hint = "give a list of (name, cron, callback, delay)"

    def __init__(self) -> None:
        super().__init__("Registrations must be an array")


class RegistrationShapeError(HoraeError):
    """A registration is not a name, a cron expression, a coroutine function and a delay."""

    def __init__(self, index: int, received: object, hint: str) -> None:
        super().__init__(
            "Invalid registration shape: expected [string, string, function, Duration]",
            {"registrationIndex": index, "received": received},
            hint=hint,
        )


class InvalidRegistrationError(HoraeError):
    """A registration has the right shape but invalid data."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(
            f"Invalid registration: {field} {reason}", {"field": field, "value": value, "reason": reason}
        )


class ScheduleDuplicateTaskError(_NamedError):
    """Two registrations have one name."""

    sentence, field = 'Task with name "{}" is already scheduled', "taskName"
    hint = "each task needs a name of its own"


class SchedulerAlreadyActiveError(_NamedError):
    """A scheduler that is initializing or running cannot be initialized."""

    sentence, field = "Cannot initialize scheduler: scheduler is already {}", "currentState"
    hint = "await stop() first"


class NegativeRetryDelayError(HoraeError):
    """A retry delay is below zero."""

    def __init__(self, milliseconds: float) -> None:
        super().__init__("Retry delay must be non-negative", {"retryDelayMs": milliseconds})


class SchedulerInitializationError(HoraeError):
    """Initializing failed for another reason, which is the cause of this error; nothing was changed."""

    hint = "its cause says more"

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"Cannot initialize scheduler: {type(cause).__name__}", {"cause": cause})


class SchedulerStopError(HoraeError):
    """The scheduler has stopped, but could not record how all runs ended; the unrecorded ones run again."""

    hint = "its cause says more"

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"Cannot record how everything ended: {type(cause).__name__}", {"cause": cause})


class TaskTryDeserializeError(HoraeError):
    """The stored record of a task cannot be read. ``task`` is its name."""

    def __init__(
        self, message: str, details: Mapping[str, Any], *, task: str, hint: str | None = None
    ) -> None:
        super().__init__(
            message,
            details,
            hint=hint
            or f'repair the record of the task "{_shown(task)}", or leave it out of the registrations',
        )
        self.task = task
        self.add_note(f'in the stored record of the task "{_shown(task)}"')


class TaskMissingFieldError(TaskTryDeserializeError):
    """The stored record of a task lacks a field."""

    def __init__(self, task: str, field: str) -> None:
        super().__init__(f"Missing required field: {field}", {"field": field}, task=task)


class TaskInvalidTypeError(TaskTryDeserializeError):
    """A field of the stored record of a task has the wrong type."""

    def __init__(self, task: str, field: str, value: object, expected: str) -> None:
        actual = _type_name(value)
        super().__init__(
            f"Invalid type for field '{field}': expected {expected}, got {actual}",
            {"field": field, "value": value, "expectedType": expected, "actualType": actual},
            task=task,
        )


class TaskInvalidValueError(TaskTryDeserializeError):
    """A field of the stored record of a task has an invalid value."""

    def __init__(self, task: str, field: str, value: object, reason: str) -> None:
        super().__init__(
            f"Invalid value for field '{field}': {reason}",
            {"field": field, "value": value, "reason": reason},
            task=task,
        )


class TaskInvalidStructureError(TaskTryDeserializeError):
    """The stored value of a task is not a record."""

    def __init__(self, task: str, value: object) -> None:
        super().__init__(
            f"Invalid task structure: expected an object, got {_type_name(value)}",
            {"value": value},
            task=task,
        )


def _type_name(value: object) -> str:
    """A type in the words of JSON."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


class CronExpressionInvalidError(HoraeError):
    """A registration's cron expression was refused; the parser's own error is its cause."""

    def __init__(self, cause: InvalidCronExpressionError) -> None:
        super().__init__(cause.message, cause.details, hint=cause.hint_handed_on())


class CronCalculationError(HoraeError):
    """A cron expression has no next (or no previous) slot that Horae can compute."""

    def __init__(self, expression: str, current_time: str, cause: Exception) -> None:
        super().__init__(
            f"Failed to calculate next occurrence: {cause}",
            {"expression": expression, "currentTime": current_time, "cause": cause},
        )


class CalendarNotFoundError(_NamedError):
    """No shared calendar has this name."""

    sentence, field = 'There is no calendar "{}"', "calendar"


class CalendarInUseError(HoraeError):
    """Schedules exclude the shared calendar that was to be removed; nothing was changed."""

    hint = "change those schedules first"

    def __init__(self, name: str, schedule_id: str) -> None:
        super().__init__(
            f'The calendar "{name}" is excluded by schedules, "{schedule_id}" among them',
            {"calendar": name, "scheduleId": schedule_id},
        )


class InvalidFlowError(HoraeError):
    """A flow cannot be deployed."""

    def __init__(self, flow: str, handler: str | None, reason: str, *, hint: str | None = None) -> None:
        who = f'The flow "{flow}"' if handler is None else f'The handler "{handler}" of the flow "{flow}"'
        super().__init__(
            f"{who} cannot be deployed: {reason}",
            {"flow": flow, "handler": handler, "reason": reason},
            hint=hint,
        )


class FlowNotFoundError(_NamedError):
    """No flow has this name."""

    sentence, field = 'There is no flow "{}"', "flow"


class FlowRunNotFoundError(_NamedError):
    """No run of the flow has this id."""

    sentence, field = 'The flow has no run "{}"', "run_id"


class FlowInputNotFoundError(HoraeError):
    """No such input was registered in the flow."""

    def __init__(self, source: str, kind: str, input_id: str) -> None:
        super().__init__(
            f'The flow has no input "{_shown(input_id)}" of the type "{_shown(kind)}" from "{_shown(source)}"',
            {"source": source, "type": kind, "id": input_id},
        )


class FlowRefusedError(HoraeError):
    """A flow cannot do this in its present state."""

    def __init__(self, flow: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f'The flow "{_shown(flow)}" {reason}', {"flow": flow, "reason": reason}, hint=hint)


class LimitExceededError(HoraeError):
    """A limit of the service was reached; nothing was stored. ``details`` name it: ``limit`` and ``most``."""

    def __init__(self, limit: str, most: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"{reason}: the limit {limit} is {most}",
            {"limit": limit, "most": most},
            hint=hint or f"the operator can set HORAE_{limit.upper()}",
        )


class EvaluationTimeoutError(HoraeError):
    """An answer about times took too long to compute, and was abandoned; nothing was changed."""

    hint = "ask for a shorter range or fewer times, or try again when less is going on"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The answer was not computed within {seconds:g} seconds", {"seconds": seconds})


class TooManyEvaluationsError(HoraeError):
    """Too many answers about times are being computed for one owner; nothing was changed. ``retryAfter`` is in seconds."""

    hint = "wait for those before asking for more"

    def __init__(self, most: int) -> None:
        details = {"most": most, "retryAfter": 1}
        super().__init__(f"{most} answers about times are being computed already", details)


class AuthenticationError(HoraeError):
    """The sender of a request is not known: it has no token, or an invalid one."""

    hint = "send the header Authorization: Bearer TOKEN"


class PermissionDeniedError(HoraeError):
    """The sender of a request may not do this."""


class ReportRefusedError(HoraeError):
    """A report on a run has no token of its current attempt, or the run has ended; nothing was changed."""

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(f"The report on the run {_shown(run_id)} was refused: {reason}", {"runId": run_id})


class StaleClaimError(HoraeError):
    """The attempt is no longer the current one of its run, and saved nothing: another may be running, so end this one."""

    def __init__(self, run_id: str, attempt: int) -> None:
        super().__init__(
            f"Attempt {attempt} of the run {_shown(run_id)} is no longer the current one",
            {"runId": run_id, "attempt": attempt},
        )


class ServerError(HoraeError):
    """A server could not be reached, or answered with an error; ``details`` are those of its answer."""


class MissingExtraError(HoraeError):
    """A part of Horae is needed that is not installed."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(
            f"This needs the part {extra} of Horae, and {module} is not installed",
            {"extra": extra, "module": module},
            hint=f"pip install 'horae[{extra}]'",
        )
