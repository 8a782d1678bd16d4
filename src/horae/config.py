"""The settings of a program: one frozen value, with the limits of everything.

Spans are milliseconds. Each has a name in the environment: ``HORAE_`` and its own name in capitals.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from horae.errors import ConfigError
from horae.model import DAY, CatchUp, Limits, Overlap

HOUR = 60 * 60 * 1000


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How a node works. The defaults suit a program of one process and a service of several."""

    node_name: str = ""
    """What this node is called; empty, and its host and process name it."""
    tick_ms: int = 1000
    """The longest that a change made by another process goes unnoticed if the word of it is lost."""
    lookahead_ms: int = 60_000
    """The misfire grace and the spread of late ticks, for schedules that do not say otherwise in the registrar."""
    max_catchup_per_tick: int = 100
    """How many late slots of one schedule are taken at once."""
    max_buffer_size: int = 1000
    """How many automatic starts of one schedule may wait."""
    backfills_per_iteration: int = 10
    """How many slots of one backfill are taken at once."""
    concurrency: int = 1000
    """How many runs go on at once in this node; the others wait, or run elsewhere."""
    most_crashes: int = 10
    """How many processes may die over one run before it has failed."""
    lease_ms: int = 10_000
    """How long a node on PostgreSQL lives without a sign of life."""
    housekeeping_ms: int = 3000
    """How often a node gives a sign of life, and looks for runs that dead nodes left."""
    reconcile_ms: int = 300_000
    """How often schedules are looked for that should have a next time and have none."""
    prune_ms: int = 60_000
    """How often some of the ledger is looked through for what is past its retention."""
    attention_ms: int = 60_000
    """How long a run waits for a node that can run it, before its schedule needs attention."""
    drain_ms: int = 30_000
    """How long a node that stops waits for its runs; what goes on then is stopped and attempted elsewhere."""
    terminate_ms: int = 5000
    """How long a run that is made to stop may take to end; then it has ended as far as the ledger goes."""
    retention_age_ms: int = 90 * DAY
    """How long the ledger keeps what ended."""
    retention_count: int = 10_000
    """How many ended runs of one schedule the ledger keeps."""
    default_overlap_policy: Overlap = Overlap.SKIP
    """The overlap policy of schedules that the registrar is given without one."""
    default_catchup_policy: CatchUp = CatchUp.NONE
    """Their catch-up policy."""
    default_jitter_ms: int = 0
    """Their jitter."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            least = 0 if name in _MAY_BE_ZERO else 1
            if isinstance(value, int) and value < least:
                raise ConfigError(setting_name(name), value, f"must be at least {least}")
        if self.lookahead_ms > HOUR:
            raise ConfigError(setting_name("lookahead_ms"), self.lookahead_ms, f"must be at most {HOUR}")
        if self.housekeeping_ms * 2 > self.lease_ms:
            raise ConfigError(
                setting_name("housekeeping_ms"),
                self.housekeeping_ms,
                "must be at most half of HORAE_LEASE_MS",
            )

    @property
    def limits(self) -> Limits:
        """What one decision may bring about at most."""
        return Limits(
            catch_up_per_pass=self.max_catchup_per_tick,
            max_pending=self.max_buffer_size,
            backfills_per_pass=self.backfills_per_iteration,
            most_crashes=self.most_crashes,
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Config:
        """The settings that the environment names, and the defaults of the others."""
        environment = os.environ if environment is None else environment
        given = {}
        for field in msgspec.structs.fields(cls):
            text = environment.get(setting_name(field.name))
            if text is not None:
                try:
                    given[field.name] = msgspec.convert(text, field.type, strict=False)
                except msgspec.ValidationError as error:
                    raise ConfigError(setting_name(field.name), text, f"cannot be read: {error}") from None
        return cls(**given)


_MAY_BE_ZERO = {"default_jitter_ms", "drain_ms", "lookahead_ms"}


def setting_name(field: str) -> str:
    """The name of a setting in the environment."""
    return f"HORAE_{field.upper()}"


UNHURRIED = Config(
    tick_ms=DAY, housekeeping_ms=HOUR, lease_ms=2 * HOUR, reconcile_ms=DAY, prune_ms=DAY, drain_ms=2**40
)  # fmt: skip
"""For a program on a virtual clock: nobody else is there whose word could be lost, and years pass in moments."""
