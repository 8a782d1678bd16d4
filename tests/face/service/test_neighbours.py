"""One owner's schedules and requests, however costly, do not hold up another's: a real service, on both stores."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from horae.clock import SystemClock
from tests.support.process import Server, StartServer

CLOCK = SystemClock()
GOOD = 1000
EVERY = 10
"""Each good schedule fires so often, in seconds; a part of them each second."""
HOSTILE = 100
WATCHED = 3
"""Seconds that are compared: first without the hostile ones, then with them."""
PROMPTLY = {"timeouts": {"start": f"{EVERY // 2}s"}, "catch_up": {"mode": "none"}}
"""The policies of the good ones: the ledger itself judges lateness. A slot that does not start within half of the period never does."""

PRIMES = (
    7919, 7907, 7901, 7883, 7879, 7877, 7873, 7867, 7853, 7841, 7829, 7823, 7817, 7793, 7789, 7759, 7757, 7753, 7741,
    7727,
)  # fmt: skip
YEAR = {"start": "2025-01-01T00:00:00Z", "end": "2025-01-12T00:00:00Z"}

SPECS: list[dict[str, Any]] = [
    # Recurrences by the second that meet a calendar once in decades, beside one that is due each second.
    {
        "rrules": [
            f"DTSTART:20200101T000000Z\nRRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=6;BYMINUTE=45;BYSECOND={second}"
            for second in range(6)
        ],
        "intervals": [{"every": "1s"}],
    },
    {"intervals": [{"every": f"{each}s"} for each in PRIMES], "exclude": [{"hour": "3"}, {"minute": "7"}, {"second": "9"}, {"month": "2"}]},
    {"intervals": [{"every": "1s"}, *({"every": f"{each}s"} for each in PRIMES[:8])], "jitter": {"span": "1h", "centred": True}},
    {"crons": ["* * * * *"], "intervals": [{"every": "2s"}], "exclude": [{"second": str(each)} for each in range(1, 59, 3)]},
    # Long texts, beside something that is due each second.
    {"intervals": [{"every": "1s"}], "times": [f"2099-01-01T{each // 60:02}:{each % 60:02}:00" for each in range(1000)]},
    {
        "intervals": [{"every": "1s"}],
        "exclude": [{"second": "0,3,7,12,20,33", "minute": "1,2,4,8,16,32", "year": str(2000 + each)} for each in range(100)],
    },
]  # fmt: skip
POLICIES: list[dict[str, Any]] = [
    {"overlap": "buffer_all", "catch_up": {"mode": "all"}},
    {"overlap": "allow_all", "catch_up": {"mode": "all"}, "max_concurrent": 5},
    {"overlap": "cancel_other"},
]

EXPECTED = {200, 201, 202, 204, 404, 409, 422, 429, 503}
"""What requests of the hostile owner may be answered with."""


def hostile() -> Iterator[dict[str, Any]]:
    """Legal schedules that cost as much as they can: what a service takes of them, it must bear."""
    ways = zip(cycle(SPECS), cycle(POLICIES), cycle(("nap", "slow", "ping")), strict=False)
    for number, (spec, policies, action) in enumerate(islice(ways, HOSTILE)):
        backfills = [YEAR | {"overlap": "buffer_all"}] if number % 5 == 0 else []
        yield {
            "id": f"hostile-{number}",
            "spec": spec,
            "policies": policies,
            "action": action,
            "backfills": backfills,
        }


class Neighbour:
    """An owner who sends the most costly requests, again and again."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(paths,), daemon=True)
            for paths in (self._read, self._change)
        ]
        self.statuses: dict[int, int] = defaultdict(int)
        self.surprises: list[str] = []

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self, *, answered: bool) -> None:
        """Send no more requests; wait until those that are under way are answered, if so asked."""
        self._ended.set()
        for thread in self._threads if answered else ():
            thread.join(60)

    def _ask(self, requests: Any) -> None:
        with httpx.Client(base_url=f"{self._address}/api/v1", timeout=60) as client:
            for number in range(10**9):
                for method, path, body in requests(number % HOSTILE):
                    if self._ended.is_set():
                        return
                    with contextlib.suppress(httpx.TransportError):
                        mark = "&" if "?" in path else "?"
                        answer = client.request(method, f"{path}{mark}owner=eve", json=body)
                        self.statuses[answer.status_code] += 1
                        if answer.status_code not in EXPECTED:
                            self.surprises.append(answer.text)

    def _read(self, number: int) -> list[tuple[str, str, Any]]:
        there = f"/schedules/hostile-{number}"
        return [
            ("GET", f"{there}/times?limit=1000", None),
            ("GET", f"{there}/explain?time=2027-01-01T00:00:00Z", None),
            ("POST", f"{there}/preview", {"spec": SPECS[number % len(SPECS)] | {"jitter": None}}),
            ("POST", f"{there}/backfills", YEAR | {"dry_run": True}),
            ("GET", "/schedules?limit=1000", None),
            ("GET", "/forecast?minutes=1440&jitter=1h", None),
        ]

    def _change(self, number: int) -> list[tuple[str, str, Any]]:
        there = f"/schedules/hostile-{number}"
        return [
            ("PATCH", there, {"spec": SPECS[(number + 1) % len(SPECS)]}),
            ("POST", f"{there}/pause", None),
            ("POST", "/bulk/pause", {"filter": {"prefix": "hostile-9"}}),
            ("POST", "/bulk/resume", {"filter": {}}),
            ("DELETE", there, None),
            ("POST", "/schedules", next(islice(hostile(), number, None))),
        ]


class Pulse:
    """Polls the service's health and readiness all the time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self.answers: list[tuple[str, int]] = []
        self._thread.start()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._address, timeout=60) as client:
            while not self._ended.wait(0.1):
                for path in ("/healthz", "/readyz"):
                    try:
                        status = client.get(path).status_code
                    except httpx.TransportError:
                        status = 0
                    self.answers.append((path, status))

    def end(self) -> None:
        self._ended.set()
        self._thread.join(30)


def create_good(server: Server, log: Path) -> None:
    schedules = [
        {
            "id": f"good-{number:04}", "spec": {"intervals": [{"every": f"{EVERY}s", "phase": f"{number % EVERY}s"}]},
            "action": {"name": "noted", "input": str(log)}, "policies": PROMPTLY,
        }
        for number in range(GOOD)
    ]  # fmt: skip
    answer = server.ask("POST", "/bulk/schedules", {"schedules": schedules}, params={"owner": "ada"})
    assert answer.status_code == 201, answer.text


def lateness(log: Path, first: int, last: int) -> list[float]:
    """How late each good slot of some seconds began, in seconds, sorted; all of them did, once, and in order."""
    begun: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for line in log.read_text().splitlines():
        schedule, nominal, at = line.split()
        begun[schedule].append((int(nominal), float(at)))
    found = []
    for number in range(GOOD):
        own = begun[f"good-{number:04}"]
        assert [nominal for nominal, _ in own] == sorted({nominal for nominal, _ in own})
        expected = [second for second in range(first, last) if second % EVERY == number % EVERY]
        began = dict(own)
        assert [second for second in expected if second not in began] == []
        found += [began[second] - second for second in expected]
    return sorted(found)


def watch(log: Path) -> list[float]:
    """Let some seconds pass, and see how late what was due in them began."""
    first = int(CLOCK.now().timestamp()) + 1
    last = first + WATCHED
    time.sleep(last - CLOCK.now().timestamp())
    end = CLOCK.monotonic() + 60
    while CLOCK.monotonic() < end:
        with contextlib.suppress(AssertionError, FileNotFoundError):
            return lateness(log, first, last)
        time.sleep(0.5)
    return lateness(log, first, last)


@pytest.mark.heavy
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_hundred_hostile_schedules_do_not_delay_a_thousand_good_ones(
    store: str, start: StartServer, request: pytest.FixtureRequest, tmp_path: Path
):
    database = None if store == "sqlite" else request.getfixturevalue("postgres")
    server, log = start(database), tmp_path / "begun"
    create_good(server, log)
    time.sleep(2)
    alone = watch(log)
    pulse, neighbour = Pulse(server.url), Neighbour(server.url)
    refused = []
    for each in hostile():
        answer = server.ask("POST", "/schedules", each, params={"owner": "eve"})
        if answer.status_code != 201:
            refused.append(answer.json()["code"])
    neighbour.begin()
    beside = watch(log)
    neighbour.end(answered=store == "sqlite")  # the forecast takes ten seconds, and asks no store meanwhile
    pulse.end()

    middle = len(alone) // 2
    said = f"{alone[middle]:.3f} s late alone, {beside[middle]:.3f} s beside; answered {dict(neighbour.statuses)}"
    assert len(alone) == len(beside) == GOOD * WATCHED // EVERY, said
    assert set(refused) <= {"spec_too_costly"}
    assert set(pulse.answers) == {("/healthz", 200), ("/readyz", 200)}, said
    assert neighbour.surprises == []
    assert "taken for dead" not in server.log
    assert "Traceback" not in server.log
