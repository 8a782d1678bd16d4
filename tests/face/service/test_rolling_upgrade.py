"""Three nodes behind a load balancer, upgraded one at a time: every request is answered, and every slot runs once."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.face.cli.command import horae_process
from tests.support.process import Server
from tests.support.wait import wait_for

APP = "tests.face.service.versioned_actions"
SETTINGS = {"HORAE_HOUSEKEEPING_MS": "400", "HORAE_LEAVE_MS": "500", "HORAE_TICK_MS": "1000"}


class Balancer:
    """Takes turns among the nodes whose ``/readyz`` last answered 200, asked every 150 ms, as the page's configurations do."""

    def __init__(self, ports: list[int]) -> None:
        self._ports, self._turn = ports, count()
        self.ready: dict[int, bool] = {}
        self.answered: Counter[int] = Counter()
        self._client = httpx.Client(timeout=10)
        self._ending = threading.Event()
        balancer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = balancer._pass_on(self.command, self.path, body)
                self.send_response(answer.status_code)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_POST = do_GET  # noqa: N815 - as the base class calls it

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._server.serve_forever, self._check)
        ]
        for thread in self._threads:
            thread.start()

    def _pass_on(self, method: str, path: str, body: bytes) -> httpx.Response:
        turn, headers = next(self._turn), {"Content-Type": "application/json"} if body else {}
        ready = [port for port in self._ports if self.ready.get(port)]
        for place in range(len(ready)):
            port = ready[(turn + place) % len(ready)]
            try:
                answer = self._client.request(
                    method, f"http://127.0.0.1:{port}{path}", content=body, headers=headers
                )
            except httpx.ConnectError:
                continue
            self.answered[port] += 1
            return answer
        return httpx.Response(503, text="no node is ready")

    def _check(self) -> None:
        while not self._ending.wait(0.15):
            for port in self._ports:
                try:
                    answer = self._client.get(f"http://127.0.0.1:{port}/readyz")
                    self.ready[port] = answer.status_code == 200
                except httpx.HTTPError:
                    self.ready[port] = False

    def end(self) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(20)
        self._client.close()


class Requests(threading.Thread):
    """A client that reads and changes a schedule through the balancer, all the time."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._client = httpx.Client(base_url=f"{url}/api/v1", timeout=20)
        self.answers: Counter[tuple[str, int]] = Counter()
        self.ending = threading.Event()

    def run(self) -> None:
        with self._client:
            while not self.ending.wait(0.1):
                for method, path in (("GET", "/schedules/tick"), ("POST", "/schedules/idle/trigger")):
                    answer = self._client.request(method, path)
                    self.answers[method, answer.status_code] += 1


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def nodes() -> Iterator[dict[int, Server]]:
    found: dict[int, Server] = {}
    yield found
    for each in found.values():
        each.process.kill()
        each.end()


def start(database: str, port: int, **settings: str) -> Server:
    return Server(database, "--port", str(port), app=APP, **SETTINGS, **settings)


@pytest.mark.contract("CRON-16")
def test_a_rolling_upgrade_loses_no_slot_and_no_request(
    postgres: str, nodes: dict[int, Server], tmp_path: Path
):
    ports = free_ports(3)
    with ThreadPoolExecutor(3) as pool:
        nodes.update(zip(ports, pool.map(lambda port: start(postgres, port), ports), strict=True))
    balancer = Balancer(ports)
    log = tmp_path / "log"
    wait_for(lambda: sum(balancer.ready.values()) == 3)
    create(balancer.url, "tick", {"crons": ["* * * * * *"]}, "noted", str(log))
    create(balancer.url, "idle", {"times": ["2099-01-01T00:00:00Z"]}, "ping", None)
    client = Requests(balancer.url)
    client.start()
    try:
        for place, port in enumerate(ports):
            before = slots(log)
            assert nodes[port].end() == 0, nodes[port].log
            nodes[port] = start(postgres, port, NEWER="1")
            wait_for(lambda port=port: balancer.ready[port])  # type: ignore[misc]
            for old in ports[place + 1 :]:  # they decide nothing more, and are asked nothing more
                wait_for(lambda old=old: not balancer.ready[old])  # type: ignore[misc]
                assert "newer schema" in nodes[old].client.get("/readyz").json()["status"]
                done_by_another(nodes[old])
            wait_for(lambda before=before: len(slots(log)) > len(before))  # type: ignore[misc]
        refused = horae_process("serve", "--port", "0", "--database", postgres)
    finally:
        client.ending.set()
        client.join(20)
        balancer.end()
    assert (refused.returncode, "version 2, and this Horae knows up to 1" in refused.stderr) == (2, True)
    ran = slots(log)
    assert ran == list(range(ran[0], ran[0] + len(ran)))  # each second once, none left out
    assert {key[1] for key in client.answers} == {200, 202}, client.answers
    assert min(balancer.answered[port] for port in ports) > 0


def done_by_another(node: Server) -> None:
    """What a node that decides nothing is asked for, another one does."""
    asked = node.ask("POST", "/schedules/idle/trigger").json()["run_id"]
    wait_for(lambda: node.get(f"/runs/{asked}")["status"] == "succeeded")


def create(url: str, name: str, spec: dict[str, Any], action: str, given: Any) -> None:
    body = {
        "id": name, "spec": spec, "action": {"name": action, "input": given},
        "policies": {"overlap": "allow_all", "catch_up": {"mode": "all"}},
    }  # fmt: skip
    answer = httpx.post(f"{url}/api/v1/schedules", json=body)
    assert answer.status_code == 201, answer.text


def slots(log: Path) -> list[int]:
    lines = log.read_text().splitlines() if log.exists() else []
    return sorted(int(line.split()[1]) for line in lines)
