"""A schedule to decide for."""

from horae.model import Action, Policies, Schedule, State
from horae.spec import Spec

T = 1_772_366_400
"""A Sunday noon."""
MINUTELY = Spec.cron("* * * * *")
PLAIN, USUAL = State(), Policies()


def schedule_of(
    spec: Spec = MINUTELY, policies: Policies = USUAL, state: State = PLAIN, cursor: int = T
) -> Schedule:
    return Schedule(
        id="s", generation=1, spec=spec.text, action=Action(name="work"), policies=policies, state=state, version=1,
        cursor_ms=cursor * 1000, created_at_ms=cursor * 1000, updated_at_ms=cursor * 1000,
    )  # fmt: skip
