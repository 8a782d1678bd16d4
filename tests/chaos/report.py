"""What a campaign found, for people."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.campaign import Settings
from tests.chaos.checker import Findings, faults_by_kind
from tests.chaos.evidence import Evidence
from tests.chaos.plan import MEANINGS

SHOWN = 40
"""How many offending slots are named."""


def report_lines(settings: Settings, evidence: Evidence, findings: Findings) -> Iterator[str]:
    yield f"{settings.store}: {settings.seconds:g} seconds, seed {settings.seed}"
    for name, count in findings.counts.items():
        yield f"  {count:>9,}  {name}"
    yield "  faults:"
    for kind, count in faults_by_kind(evidence).items():
        yield f"  {count:>9,}  {kind}: {MEANINGS[kind]}"
    if not findings.problems:
        yield "  clean"
        return
    yield f"  NOT CLEAN: {len(findings.problems)} problems; again with --seed {settings.seed}; files in {settings.folder}"
    for problem in findings.problems[:SHOWN]:
        yield f"    {problem}"
    if len(findings.problems) > SHOWN:
        yield f"    … and {len(findings.problems) - SHOWN} more"
