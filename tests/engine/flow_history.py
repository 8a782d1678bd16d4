"""Judges the recorded history of a flow: what the outside world logged, and every committed change of its runs and events.

It knows the contract, and nothing of the code: each broken line is named in what it returns.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

Entry = dict[str, Any]
TOLERANCE = 1100
"""Milliseconds by which the clock of a node may be off without anybody noticing."""
PROMPT = 90_000
"""In peace, what is due has begun after so many milliseconds: a tick, and what runs before it."""
LEAST_WAKE, MOST_WAKE = 30_000, 86_400_000
PHASES = ("executing", "preparing", "prepared", "mutating", "mutated", "emitting", "committed")
BEFORE = {"executing", "preparing", "prepared"}
TOPICS = {"take": "in", "gather": "out"}


class History:
    """What is known at each entry, and what was broken so far."""

    def __init__(self, entries: Sequence[Entry], every_ms: Sequence[int]) -> None:
        self.entries = entries
        self.every_ms = every_ms
        self.broken: list[str] = []
        self.counted: Counter[str] = Counter()
        """How often each thing happened that a line is about: a seed that lacks it proves nothing."""
        self.now: Entry = {}
        self.runs: dict[str, Entry] = {}
        """Every run as it was last committed, with all its phases and how it began."""
        self.active: set[str] = set()
        self.successors: defaultdict[str, list[str]] = defaultdict(list)
        self.looked: dict[str, Entry] = {}
        self.events: dict[int, Entry] = {}
        self.reserved: dict[int, str] = {}
        self.ids: dict[tuple[str, str], int] = {}
        self.effects: Counter[str] = Counter()
        self.effect_of: Counter[str] = Counter()
        self.mutates: Counter[str] = Counter()
        self.answers: dict[str, str] = {}
        self.live: dict[str, Entry] = {}
        self.holder: tuple[str | None, int] = (None, 0)
        self.dead: set[int] = set()
        self.orphans: set[str] = set()
        self.peace_at: int | None = None
        # Why handlers may run, and what they owe.
        self.revision = ""
        self.due_at: int | None = 0
        self.queued = False
        self.run_now_owed = False
        self.new: dict[str, bool] = dict.fromkeys(TOPICS, True)
        self.owed: dict[str, tuple[int, str, str]] = {}
        self.wake: dict[str, int | None] = dict.fromkeys(TOPICS)
        self.seen = 0

    def judge(self) -> list[str]:
        for entry in self.entries:
            self.now = entry
            getattr(self, f"_{entry['what'].replace(' ', '_')}", lambda _: None)(entry)
        self._at_the_end()
        return self.broken

    def breaks(self, line: str, what: str) -> None:
        self.broken.append(f"{line} at {self.now['seq']}: {what}")

    def require(self, held: object, line: str, what: str) -> None:
        if not held:
            self.breaks(line, what)

    # Runs

    def _run_begun(self, entry: Entry) -> None:
        run, handler, before = entry["run"], entry["handler"], entry["retry_of"]
        self.require(run not in self.runs, "FLOW-15", f"{run} began twice")
        self.runs[run] = {**entry, "began": entry["phase"], "key": _key(entry) or run}
        if entry["status"] == "active":
            self.active.add(run)
            self.require(len(self.active) == 1, "FLOW-24", f"active at once: {sorted(self.active)}")
        if before is not None:
            self.successors[before].append(run)
            self._retry(entry, self.runs[before])
        if entry["phase"] in BEFORE:
            if handler in TOPICS:
                self._look(handler, entry)
            elif before is None:
                self._produce(entry)
            self.queued = self.queued and handler in TOPICS

    def _run_moved(self, entry: Entry) -> None:
        run = self.runs[entry["run"]]
        forward = PHASES.index(entry["phase"]) >= PHASES.index(run["phase"])
        self.require(forward, "FLOW-16", f"{run['run']} went back from {run['phase']} to {entry['phase']}")
        self.require(
            run["status"] == "active", "FLOW-15", f"{run['run']} was rewritten after it was {run['status']}"
        )
        run |= {name: entry[name] for name in ("phase", "status", "prepared", "mutation", "seq")}
        run["key"] = _key(entry) or run["run"]
        if entry["status"] == "active":
            return
        self.active.discard(entry["run"])
        if entry["status"] == "crashed":
            self._crashed(entry)
        elif entry["run"] in self.orphans:
            self.breaks("FLOW-23", f"{entry['run']} of a dead node became {entry['status']}")
        if entry["status"] == "committed":
            self._committed(run)

    def _committed(self, run: Entry) -> None:
        handler, at = run["handler"], self.now["at"]
        if handler not in TOPICS:
            self.due_at = at + self.every_ms[int(self.revision) % 2]
            return
        looked = self.looked.get(run["key"])
        if looked is None:
            self.breaks("FLOW-16", f"{run['run']} committed without a look")
            return
        asked = looked["wake_at"]
        self.wake[handler] = None if asked is None else int(min(max(asked, at + LEAST_WAKE), at + MOST_WAKE))
        if looked[
            "ids"
        ]:  # it looks again until it reserves nothing; and what it publishes may have been there
            self.new = dict.fromkeys(TOPICS, True)
            self._owe(handler, "FLOW-11", "it reserved, and looks again")
        outcome = _mutation(run)
        if handler == "take" and self.answers.get(run["key"]) != "skip":  # a person may skip what happened
            happened, key = self.effects[run["key"]], run["key"]
            agrees = (outcome == "applied") == (happened == 1)
            self.require(agrees, "FLOW-18", f"{key} is {outcome}, and happened {happened} times")

    def _retry(self, entry: Entry, before: Entry) -> None:
        """A run that follows one that did not commit begins as that one left it."""
        self.counted["retries"] += 1
        begins, outcome, key = entry["phase"], _mutation(before), before["key"]
        ended = before["status"] not in {"active", "committed"}
        self.require(ended, "FLOW-18", f"{before['run']} is {before['status']}")
        cut_off = before["status"] == "crashed" and before["phase"] == "mutating"
        waits = entry["status"] == "paused:reconciliation" and begins == "mutating"
        self.require(cut_off == waits, "FLOW-23", f"{entry['run']} begins {begins} after {before['phase']}")
        if begins in BEFORE:
            happened = self.effects[key] and before["handler"] == "take"
            self.require(not happened, "FLOW-18", f"{entry['run']} begins afresh, and {key} happened")
            held = [number for number, run in self.reserved.items() if run == before["run"]]
            self.require(not held, "FLOW-18", f"{before['run']} still holds events {held}")
            return
        same = entry["prepared"] == before["prepared"]
        self.require(same, "FLOW-18", f"{entry['run']} has another prepare result")
        if not waits:
            self.counted["emits"] += 1
            known = outcome in {"applied", "skipped"} or self.answers.get(key) in {"applied", "skip"}
            self.require(known, "FLOW-18", f"{entry['run']} emits, and the outcome of {key} is not known")

    def _crashed(self, entry: Entry) -> None:
        self.counted["crashes"] += 1
        self.orphans.discard(entry["run"])
        for handler, topic in TOPICS.items():  # one more look is allowed, and owed if events are pending
            self.new[handler] = True
            if any(each["topic"] == topic and each["status"] == "pending" for each in self.events.values()):
                self._owe(handler, "FLOW-23", f"{entry['run']} crashed with events pending")

    def _claimed(self, entry: Entry) -> None:
        run, epoch = self.holder
        if run is not None and epoch in self.dead:
            self.orphans.discard(run)
        self.holder = (entry["run"], entry["epoch"])

    def _died(self, entry: Entry) -> None:
        self.dead.add(entry["epoch"])
        run, epoch = self.holder
        if epoch == entry["epoch"] and run in self.active:
            self.orphans.add(run or "")
            self.counted["deaths"] += 1
        for each in [run for run, part in self.live.items() if part["machine"] == entry["machine"]]:
            del self.live[each]

    # When handlers run

    def _produce(self, entry: Entry) -> None:
        for handler, (since, line, why) in self.owed.items():
            self.breaks(line, f"a producer runs before {handler}, which has not looked since {since}: {why}")
        for handler, wake in self.wake.items():
            overdue = wake is not None and wake < entry["at"] - TOLERANCE
            self.require(
                not overdue, "FLOW-12", f"a producer runs before {handler}, which was to wake at {wake}"
            )
        due = self.due_at is not None and entry["at"] >= self.due_at - TOLERANCE
        self.require(
            due or self.queued,
            "FLOW-08",
            f"the producer began {(self.due_at or 0) - entry['at']} ms too early",
        )
        if self.peace_at is not None and not self.queued and self.due_at is not None:
            late = entry["at"] - max(self.due_at, self.peace_at)
            self.require(late < PROMPT, "FLOW-08", f"the producer began {late} ms too late")
        self.run_now_owed = False
        self.due_at = None
        self.counted["produced"] += 1

    def _look(self, handler: str, entry: Entry) -> None:
        wake = self.wake[handler]
        woken = wake is not None and entry["at"] >= wake - TOLERANCE
        if entry["retry_of"] is None:
            line = "FLOW-12" if wake is not None else "FLOW-11" if self._found_nothing(handler) else "FLOW-10"
            self.require(self.new[handler] or woken, line, f"{handler} looks without a reason")
            if woken and not self.new[handler]:
                self.counted["woken"] += 1
                late = entry["at"] - max(wake or 0, self.peace_at or entry["at"])
                self.require(late < PROMPT, "FLOW-12", f"{handler} was woken {late} ms too late")
        self.new[handler] = False
        self.owed.pop(handler, None)

    def _owe(self, handler: str, line: str, why: str) -> None:
        self.owed.setdefault(handler, (self.now["at"], line, why))

    def _found_nothing(self, handler: str) -> bool:
        looks = [each for each in self.looked.values() if each["handler"] == handler]
        return bool(looks) and not looks[-1]["ids"]

    def _deploy(self, entry: Entry) -> None:
        """Consumers with pending events look, and those of a new version look once."""
        self.new = dict.fromkeys(TOPICS, True)

    def _version(self, entry: Entry) -> None:
        self.revision = entry["revision"]
        self.new = dict.fromkeys(TOPICS, True)
        for handler in TOPICS:
            self._owe(handler, "FLOW-10", f"version {self.revision} was deployed")
        self.due_at = entry["at"]  # every version has another schedule
        self.counted["versions"] += 1

    def _asking(self, entry: Entry) -> None:
        if entry["operation"] == "publish":  # an event that is consumed stays so, and may still be looked at
            self.new |= {handler: True for handler, topic in TOPICS.items() if topic == entry["topic"]}

    def _asked(self, entry: Entry) -> None:
        if entry["operation"] == "run_now" and entry["done"]:
            self.queued = self.run_now_owed = True
            self.counted["run_now"] += 1

    # Events

    def _event_published(self, entry: Entry) -> None:
        self.events[entry["event"]] = {**entry, "status": "pending"}
        self.ids[entry["topic"], entry["id"]] = entry["event"]
        self.seen += entry["topic"] == "in" and entry["id"].startswith("p")
        self._arrived(entry["topic"])

    def _event_updated(self, entry: Entry) -> None:
        self.require(
            self.events[entry["event"]]["status"] == "pending", "FLOW-04", "a payload was replaced too late"
        )
        self._arrived(entry["topic"])

    def _arrived(self, topic: str) -> None:
        for handler, subscribed in TOPICS.items():
            if subscribed == topic:
                self.new[handler] = True
                self._owe(handler, "FLOW-10", "an event arrived")

    def _event_moved(self, entry: Entry) -> None:
        number, before, status = entry["event"], entry["before"], entry["status"]
        event = self.events[number]
        self.require(event["status"] == before, "FLOW-04", f"{number} was {event['status']}, not {before}")
        self.require(
            before in {"pending", "reserved"}, "FLOW-04", f"{number} was {before} and became {status}"
        )
        event["status"] = status
        if status == "reserved":
            self.reserved[number] = entry["run"]
            return
        holder = self.runs.get(self.reserved.pop(number, ""))
        if holder is None or holder["handler"] != "take":
            return
        unknown = holder["phase"] == "mutating" and holder["status"] in {
            "active",
            "paused:reconciliation",
            "crashed",
        }
        key = holder["key"]
        if status == "pending":
            known = not unknown or self.answers.get(key) == "not_applied"
            self.require(known, "FLOW-18", f"event {number} was released, and {key} is unknown")
            self.require(not self.effects[key], "FLOW-18", f"event {number} was released, and {key} happened")
        if status == "skipped":
            self.require(
                holder["phase"] in BEFORE, "FLOW-05", f"event {number} was skipped in {holder['phase']}"
            )

    # The outside world

    def _part_begun(self, entry: Entry) -> None:
        run = self.runs.get(entry["run"])
        others = [
            each
            for each in self.live.values()
            if each["run"] != entry["run"] and each["machine"] not in entry["late"]
        ]
        self.require(not others, "FLOW-24", f"{entry['run']} runs beside {[each['run'] for each in others]}")
        self.live[entry["run"]] = entry
        if entry["part"] == "mutate":
            self.mutates[entry["key"]] += 1
            self.require(self.mutates[entry["key"]] == 1, "FLOW-18", f"mutate ran twice for {entry['key']}")
            self.require(
                run is not None and run["phase"] == "mutating",
                "FLOW-17",
                f"{entry['run']} mutates unrecorded",
            )
        if entry["part"] == "next" and self.effects[entry.get("key", "")]:
            recorded = run is not None and run["phase"] == "emitting" and run["mutation"] is not None
            self.require(recorded, "FLOW-17", f"{entry['run']} emits, and its outcome is not recorded")
        if entry["part"] == "producer":
            state = entry["state"] or 0
            self.require(
                state == self.seen,
                "FLOW-06",
                f"the producer got the state {state}, and {self.seen} events were committed",
            )

    def _part_ended(self, entry: Entry) -> None:
        self.live.pop(entry["run"], None)

    def _looked(self, entry: Entry) -> None:
        self.looked[entry["run"]] = entry

    def _effect(self, entry: Entry) -> None:
        self.effects[entry["key"]] += 1
        self.effect_of.update(entry["events"])
        self.counted["effects"] += 1
        for each in entry["events"]:
            self.require(self.effect_of[each] == 1, "FLOW-18", f"the effect for {each} was repeated")
            status = self.events[self.ids["in", each]]["status"]
            self.require(
                status == "reserved", "FLOW-17", f"the effect for {each} happened while it was {status}"
            )

    def _answer(self, entry: Entry) -> None:
        self.answers[entry["key"]] = entry["answer"]
        self.counted[entry["answer"]] += 1

    def _peace(self, entry: Entry) -> None:
        self.peace_at = entry["at"]

    # The end

    def _at_the_end(self) -> None:
        end = self.now
        for handler, (since, line, why) in self.owed.items():
            self.require(since > end["at"] - PROMPT, line, f"{handler} has not looked since {since}: {why}")
        self.require(not self.run_now_owed, "FLOW-09", "a producer that was asked to run now did not")
        late = self.due_at is None or self.due_at < end["at"] - PROMPT
        self.require(
            not late or self.active, "FLOW-08", f"the producer is due since {self.due_at}, and does not run"
        )
        for handler, wake in self.wake.items():
            if handler in {self.runs[run]["handler"] for run in self.active}:
                continue
            kept = end["marks"].get(handler)
            same = (kept is None) == (wake is None) and abs((kept or 0) - (wake or 0)) <= TOLERANCE
            self.require(same, "FLOW-12", f"{handler} keeps the wake time {kept}, and asked for {wake}")
            self.require(
                wake is None or wake > end["at"] - PROMPT, "FLOW-12", f"{handler} was not woken at {wake}"
            )
        self._nothing_is_forgotten(end)

    def _nothing_is_forgotten(self, end: Entry) -> None:
        self.require(not end["trouble"], "FLOW-26", "a failure was not resolved in peace")
        for run, entry in self.runs.items():
            if entry["status"] == "crashed":
                self.require(
                    len(self.successors[run]) == 1,
                    "FLOW-23",
                    f"{run} crashed, and was recovered by {self.successors[run]}",
                )
            elif entry["status"] not in {"active", "committed"}:
                self.require(
                    len(self.successors[run]) == 1,
                    "FLOW-18",
                    f"{run} is {entry['status']}, and followed by {self.successors[run]}",
                )
        self.require(not self.orphans, "FLOW-23", f"runs of dead nodes are still active: {self.orphans}")
        finished = {
            entry["key"] for entry in self.runs.values() if entry["status"] in {"committed", "active"}
        }
        forgotten = set(self.effects) - finished
        self.require(not forgotten, "FLOW-18", f"effects that no run knows of: {forgotten}")
        left = [
            each["id"]
            for each in self.events.values()
            if each["topic"] == "in" and each["status"] not in {"consumed", "skipped"}
        ]
        self.require(not left or self.active, "FLOW-18", f"events that were not taken: {left}")


def _key(run: Entry) -> str | None:
    return None if run["prepared"] is None else str(json.loads(run["prepared"]).get("key", ""))


def _mutation(run: Entry) -> str | None:
    return None if run["mutation"] is None else str(json.loads(run["mutation"])["status"])


def lines(broken: Iterable[str]) -> set[str]:
    """The lines of the contract that were broken."""
    return {each.split(" ")[0] for each in broken}
