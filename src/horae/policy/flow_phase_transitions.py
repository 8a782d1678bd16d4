"""The life of a flow's run as tables: its phases, what each failure means in each of them, and how the next run begins."""

from __future__ import annotations

from typing import NamedTuple

from horae.flow_model import FailureKind, FlowStatus, MutationStatus, Phase, Recovery

P, F, S, R = Phase, FailureKind, FlowStatus, Recovery

TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    P.EXECUTING: frozenset({P.COMMITTED}),
    P.PREPARING: frozenset({P.PREPARED}),
    P.PREPARED: frozenset({P.MUTATING, P.EMITTING}),
    P.MUTATING: frozenset({P.MUTATED}),
    P.MUTATED: frozenset({P.EMITTING}),
    P.EMITTING: frozenset({P.COMMITTED}),
    P.COMMITTED: frozenset(),
}
"""Phases only move forward. A run that reserved nothing, or whose consumer has no ``mutate``, goes from prepared to emitting. One
transaction may pass several phases: nothing happens between prepared and mutating, nor between mutated and emitting."""

ORDER: tuple[Phase, ...] = tuple(Phase)
"""All phases, each after those that come before it."""

BEFORE = (P.EXECUTING, P.PREPARING, P.PREPARED)
"""The phases in which no mutation was called."""
AFTER = (P.MUTATED, P.EMITTING)
"""The phases in which the outcome of the mutation is known."""
RUNNING_PHASES = (*BEFORE, P.MUTATING, *AFTER)


class Verdict(NamedTuple):
    """What a failure means for its run, and how the next one begins."""

    status: FlowStatus
    recovery: Recovery


_BEFORE: dict[FailureKind, Verdict] = {
    F.TRANSIENT: Verdict(S.TRANSIENT, R.AFRESH),
    F.NOT_APPLIED: Verdict(S.TRANSIENT, R.AFRESH),
    F.LOGIC: Verdict(S.LOGIC, R.AFRESH),
    F.VIOLATION: Verdict(S.LOGIC, R.AFRESH),
    F.APPROVAL: Verdict(S.APPROVAL, R.AFRESH),
    F.UNCLASSIFIED: Verdict(S.LOGIC, R.AFRESH),
    F.TIMEOUT: Verdict(S.TRANSIENT, R.AFRESH),
    F.INTERNAL: Verdict(S.INTERNAL, R.AFRESH),
    F.CRASH: Verdict(S.CRASHED, R.AFRESH),
}
_MUTATING: dict[FailureKind, Verdict] = {
    F.TRANSIENT: Verdict(S.RECONCILIATION, R.RECONCILE),
    F.NOT_APPLIED: Verdict(S.TRANSIENT, R.AFRESH),
    F.LOGIC: Verdict(S.LOGIC, R.AFRESH),
    F.VIOLATION: Verdict(S.LOGIC, R.RECONCILE),
    F.APPROVAL: Verdict(S.APPROVAL, R.AFRESH),
    F.UNCLASSIFIED: Verdict(S.RECONCILIATION, R.RECONCILE),
    F.TIMEOUT: Verdict(S.RECONCILIATION, R.RECONCILE),
    F.INTERNAL: Verdict(S.INTERNAL, R.RECONCILE),
    F.CRASH: Verdict(S.CRASHED, R.RECONCILE),
}
_AFTER: dict[FailureKind, Verdict] = {
    kind: Verdict(verdict.status, R.EMIT) for kind, verdict in _BEFORE.items()
}

FAILURES: dict[tuple[Phase, FailureKind], Verdict] = {
    (phase, kind): verdict
    for phases, verdicts in ((BEFORE, _BEFORE), ((P.MUTATING,), _MUTATING), (AFTER, _AFTER))
    for phase in phases
    for kind, verdict in verdicts.items()
}
"""Every failure in every phase in which a handler runs. In ``mutate`` an unclassified error may have come after the effect. A violation
there is the handler's fault, but its effect may have happened.
"""


def judge(phase: Phase, kind: FailureKind, mutation: MutationStatus | None) -> Verdict:
    """What a failure means. If nothing was mutated, the next run starts from the beginning."""
    verdict = FAILURES[phase, kind]
    if verdict.recovery is R.EMIT and mutation in {None, MutationStatus.NONE}:
        return Verdict(verdict.status, R.AFRESH)
    return verdict


def may_be_skipped(phase: Phase | None, mutation: MutationStatus | None) -> bool:
    """Whether an open event can still be skipped: the run that reserved it has not called ``mutate``."""
    return phase is None or phase in BEFORE or (phase in AFTER and mutation in {None, MutationStatus.NONE})


def is_forward(before: Phase, after: Phase) -> bool:
    """Whether a run may move from one phase to another, perhaps through others."""
    reached, found = {before}, TRANSITIONS[before]
    while found - reached:
        reached |= found
        found = frozenset(each for phase in found for each in TRANSITIONS[phase])
    return after in reached - {before}


def diagram() -> str:
    """The phases of a run as a Mermaid diagram."""
    lines = ["stateDiagram-v2", "    [*] --> preparing: a consumer", "    [*] --> executing: a producer"]
    for phase in ORDER:
        lines += [f"    {phase} --> {after}" for after in ORDER if after in TRANSITIONS[phase]]
    return "\n".join([*lines, "    committed --> [*]"])


def failure_table() -> str:
    """What each failure means before, in and after the mutation, as a Markdown table."""
    lines = ["| failure | before `mutate` | in `mutate` | after `mutate` |", "| --- | --- | --- | --- |"]
    for kind in FailureKind:
        cells = (FAILURES[phase, kind] for phase in (P.PREPARING, P.MUTATING, P.EMITTING))
        lines.append(f"| {kind} | {' | '.join(f'{each.status}, then {each.recovery}' for each in cells)} |")
    return "\n".join(lines)
