"""A reference interpreter of workflows, and random workflows for it: one pass over each region, sources before targets, no concurrency.

It shares nothing with the engine: structure is known from how the workflow was made, and conditions are Python functions. Where a join lets
some branches lose, which ones lose is a matter of time: there it takes what happened, if it may have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.dice import Dice

CONDITIONS: dict[str, Callable[[int], bool | None]] = {
    "true": lambda _: True,
    "false": lambda _: False,
    "index % 2 == 0": lambda index: index % 2 == 0,
    "input.flag": lambda _: True,
    "input.missing": lambda _: None,  # it fails
}
"""Conditions, and what they are in a round; ``None`` is an error."""
KINDS = ["action"] * 6 + [
    "gateway_if",
    "gateway_switch",
    "parallel",
    "join",
    "join",
    "loop_foreach",
    "loop_while",
    "end",
]


class Link(NamedTuple):
    source: str
    target: str
    when: str
    condition: str | None


class Part:
    """A region as it was made: its nodes in order, its links, and the parts that are bodies of its loops."""

    def __init__(self, loop: str | None) -> None:
        self.loop = loop
        self.order: list[str] = []
        self.kinds: dict[str, str] = {}
        self.data: dict[str, dict[str, Any]] = {}
        self.links: list[Link] = []
        self.bodies: dict[str, Part] = {}
        self.racing: set[str] = set()
        """Nodes that lead to one join, and to nothing else."""


class Maker:
    """Makes a random workflow."""

    def __init__(self, seed: int, most: int = 60) -> None:
        self.dice = Dice(seed)
        self.left = 3 + self.dice.below(most - 3)
        self.count = 0
        self.root = Part(None)
        self._add(self.root, "trigger")
        self._grow(self.root, 0)

    def parts(self) -> list[Part]:
        """All regions, outer ones first."""
        parts = [self.root]
        for part in parts:
            parts += part.bodies.values()
        return parts

    def document(self) -> dict[str, Any]:
        nodes, edges = [], []
        for part in self.parts():
            nodes += [{"id": name, "type": part.kinds[name], "data": part.data[name]} for name in part.order]
            edges += [{k: v for k, v in link._asdict().items() if v is not None} for link in part.links]
        return {"workflow_id": "random", "version": 1, "nodes": nodes, "edges": edges}

    def _add(self, part: Part, kind: str) -> str:
        name = f"{kind.rpartition('_')[2][:4]}{self.count}"
        self.count += 1
        self.left -= 1
        part.order.append(name)
        part.kinds[name] = kind
        part.data[name] = self._data(kind)
        return name

    def _data(self, kind: str) -> dict[str, Any]:
        dice = self.dice
        match kind:
            case "action":
                return {
                    "action": "work",
                    "input": {"index": "index"},
                    "retry": {"attempts": 1 + dice.below(3), "delay": "0s"},
                }
            case "join":
                return {"mode": dice.choice(["all", "any", "quorum"])}
            case "loop_foreach":
                return {
                    "items": f"[{', '.join('7' * dice.below(4))}]",
                    "max_rounds": 3,
                    "concurrency": 1 + dice.below(2),
                }
            case "loop_while":
                return {"condition": f"index < {dice.below(4)}", "max_rounds": 2 + dice.below(2)}
            case _:
                return {}

    def _grow(self, part: Part, depth: int) -> None:
        size = self.left if depth == 0 else 1 + self.dice.below(max(min(self.left, 6), 1))
        entries = 0
        while self.left > 0 and (size > 0 or not entries):
            size -= 1
            kind = self.dice.choice(KINDS)
            if (kind == "end" and part.loop is not None) or (
                kind.startswith("loop") and (depth > 1 or self.left < 3)
            ):
                kind = "action"
            sources = [each for each in part.order if part.kinds[each] != "end" and each not in part.racing]
            if part.loop is not None:
                sources.append(part.loop)
            chosen = {self.dice.choice(sources) for _ in range(1 + self.dice.below(3))}
            if kind == "join" and self.left > 4 and self.dice.chance(50):
                chosen = self._race(part, min(chosen))
            name = self._add(part, kind)
            for source in sorted(chosen):
                self._link(part, source, name)
                entries += 1
            self._finish(part, name, kind, len(chosen))
            if kind.startswith("loop"):
                body = Part(name)
                part.bodies[name] = body
                self._grow(body, depth + 1)
                if not body.order:
                    self._link(body, name, self._add(body, "action"))
                for last in body.order:  # what leads nowhere leads back
                    if not any(link.source == last for link in body.links):
                        body.links.append(Link(last, name, "always", None))

    def _race(self, part: Part, source: str) -> set[str]:
        """Actions that begin together and lead to one join: of some joins, the slower ones lose."""
        racing = {self._add(part, "action") for _ in range(2 + self.dice.below(2))}
        for each in sorted(racing):
            self._link(part, source, each)
        part.racing |= racing
        return racing

    def _finish(self, part: Part, name: str, kind: str, arriving: int) -> None:
        if kind == "join" and part.data[name]["mode"] == "quorum":
            part.data[name]["quorum"] = 1 + self.dice.below(arriving)

    def _kind_of(self, part: Part, name: str) -> str:
        return part.kinds.get(name, "loop")

    def _link(self, part: Part, source: str, target: str) -> None:
        kind = self._kind_of(part, source)
        condition = self.dice.choice([None, None, *CONDITIONS]) if self.dice.chance(40) else None
        when = self.dice.choice(["success", "success", "always", "error"])
        if kind in {"trigger", "parallel", "join"} or source == part.loop:
            when = self.dice.choice(["success", "always"])
        if kind.startswith("gateway"):
            when = "success"
            own = [link for link in part.links if link.source == source]
            if kind == "gateway_if" and len(own) == 2:
                part.kinds[source] = kind = "gateway_switch"
            bare = any(link.condition is None for link in own)
            condition = self.dice.choice([*CONDITIONS]) if bare or not own else condition
        part.links.append(Link(source, target, when, condition))

    def close_gateways(self) -> None:
        """A gateway without a condition is no gateway."""
        for part in self.parts():
            for name in part.order:
                own = [link for link in part.links if link.source == name]
                if part.kinds[name].startswith("gateway") and not any(link.condition for link in own):
                    part.kinds[name] = "parallel"
                    part.links = [
                        link._replace(when="success")
                        if link.source == name and link.when == "error"
                        else link
                        for link in part.links
                    ]


class Planted:
    """What each action does, by its place: fails so often, then succeeds; or fails for good."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def failures(self, place: str) -> int:
        dice = Dice((self._seed, place))
        return dice.choice([0, 0, 0, 0, 1, 2, 9])

    def hangs(self, place: str) -> bool:
        """Whether each of its attempts takes longer than its timeout."""
        return Dice((self._seed, "hangs", place)).chance(6)

    def turns(self, place: str) -> int:
        return Dice((self._seed, "turns", place)).below(5)


class Expected(NamedTuple):
    state: str
    output: Any
    followed: tuple[tuple[str, str], ...]


class Reference:
    """Interprets a workflow; ``lost`` are the places that a join may have cancelled, as they were found."""

    def __init__(self, maker: Maker, planted: Planted, actual: dict[str, str]) -> None:
        self.planted = planted
        self.actual = actual
        self.states: dict[str, Expected] = {}
        self.cancelled: list[str] = []
        """Of what lies within these places, nothing is known: it was running when a join cancelled it, or when another round failed."""
        self.unhandled = self._part(maker.root, "", 0)

    def _part(self, part: Part, prefix: str, index: int) -> bool:
        """Interpret a region; returns whether something in it failed and was not handled."""
        own: dict[str, Expected] = {}
        failed = False
        if part.loop is not None:
            followed, fault = self._follow(part, part.loop, "succeeded", index, kind="loop")
            own[part.loop] = Expected("succeeded", None, followed)
            failed |= fault
        for name in part.order:
            own[name], fault = self._node(part, name, prefix, index, own)
            self.states[prefix + name] = own[name]
            failed |= fault or (own[name].state == "failed" and not own[name].followed)
        self.round_output = self._output(part, own)
        return failed

    def _output(self, part: Part, own: dict[str, Expected]) -> Any:
        back = [name for name in part.order if any(target == part.loop for _, target in own[name].followed)]
        outputs = {name: own[name].output for name in back}
        return next(iter(outputs.values()), None) if len(outputs) < 2 else outputs

    def _node(
        self, part: Part, name: str, prefix: str, index: int, own: dict[str, Expected]
    ) -> tuple[Expected, bool]:
        kind, place = part.kinds[name], prefix + name
        arriving = [link for link in part.links if link.target == name]
        arrived = [link for link in arriving if (link.source, name) in own[link.source].followed]
        if not self._runs(part, name, arriving, arrived):
            return Expected("skipped", None, ()), False
        if self.actual.get(place, "skipped") in {"cancelled", "skipped"} and self._may_lose(part, name):
            self.cancelled.append(f"{place}/")
            return Expected(self.actual.get(place, "skipped"), None, ()), False
        state, output = self._ran(part, name, kind, place, index, arrived)
        followed, fault = self._follow(part, name, state, index, kind)
        if kind.startswith("gateway"):
            if fault:
                followed, _ = self._follow(part, name, "failed", index, kind)
                return Expected("failed", None, followed), False
            output = followed[0][1] if followed else None
        return Expected(state, output, followed), fault

    def _runs(self, part: Part, name: str, arriving: list[Link], arrived: list[Link]) -> bool:
        if part.kinds[name] == "trigger":
            return True
        if part.kinds[name] != "join":
            return bool(arrived)
        data = part.data[name]
        least = {"all": len(arriving), "any": 1, "quorum": data.get("quorum", 0)}[data["mode"]]
        return len(arrived) >= int(least)

    def _may_lose(self, part: Part, name: str) -> bool:
        """Whether all that follows a node leads to a join that ran without it."""
        for join in part.order:
            loses = part.kinds[join] == "join" and part.data[join]["mode"] != "all" and join != name
            if loses and self._only(part, name, join) and self._ran_at_all(part, join):
                return True
        return False

    def _only(self, part: Part, name: str, join: str) -> bool:
        following = {link.target for link in part.links if link.source == name}
        return bool(following) and all(
            target == join or (target in part.kinds and self._only(part, target, join))
            for target in following
        )

    def _ran_at_all(self, part: Part, join: str) -> bool:
        return any(place.rpartition("/")[2] == join for place in self.actual)

    def _ran(
        self, part: Part, name: str, kind: str, place: str, index: int, arrived: list[Link]
    ) -> tuple[str, Any]:
        match kind:
            case "action":
                failures, attempts = self.planted.failures(place), part.data[name]["retry"]["attempts"]
                if self.planted.hangs(place):
                    return "failed", None
                return ("succeeded", f"{place}#{index}") if failures < attempts else ("failed", None)
            case "trigger":
                return "succeeded", {"flag": True}
            case "join":
                return "succeeded", ANY_ARRIVALS
            case "loop_foreach" | "loop_while":
                return self._loop(part, name, kind, place)
            case _:
                return "succeeded", None

    def _loop(self, part: Part, name: str, kind: str, place: str) -> tuple[str, Any]:
        data, outputs = part.data[name], []
        if kind == "loop_foreach":
            rounds = data["items"].count("7")
        else:
            rounds = int(data["condition"].rpartition(" ")[2])
        failed = False
        for number in range(rounds):
            if number >= data["max_rounds"]:
                return "failed", None
            prefix = f"{place}/{number}/"
            if failed and data.get("concurrency", 1) > 1:  # it may have been running already
                self.cancelled.append(prefix)
            elif failed:
                return "failed", None
            else:
                failed = self._part(part.bodies[name], prefix, number)
                outputs.append(self.round_output)
        return ("failed", None) if failed else ("succeeded", outputs)

    def _follow(
        self, part: Part, name: str, state: str, index: int, kind: str
    ) -> tuple[tuple[tuple[str, str], ...], bool]:
        wanted = {"always", "success" if state == "succeeded" else "error"}
        own = [link for link in part.links if link.source == name and link.when in wanted]
        gateway = kind.startswith("gateway")
        if gateway:
            own.sort(key=lambda link: link.condition is None)
        followed, fault = [], False
        for link in own:
            holds = True if link.condition is None else CONDITIONS[link.condition](index)
            fault |= holds is None
            if holds:
                followed.append((link.source, link.target))
            if gateway and (followed or fault):
                break
        return tuple(followed), fault


class _Anything:
    """Equal to everything: what arrived at a join is a matter of time."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ANY_ARRIVALS = _Anything()
