"""Let the contestants run, print the page, and write it to a file if one is named."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from bench.herd.contestant import NAMES
from bench.herd.measure import FULL, PARTS, QUICK, measure
from bench.herd.report import render
from bench.herd.server import Databases


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.herd", description="A herd of jobs due at one instant."
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page to a Markdown file")
    parser.add_argument(
        "--quick", action="store_true", help="a small herd: to see that it runs, not how fast"
    )
    parser.add_argument(
        "--sizes", type=_sizes, metavar="N,…", help="how many jobs, instead of 1000,10000,100000"
    )
    parser.add_argument(
        "--peers-up-to", type=int, metavar="N", help="the largest herd of the peers, instead of 10000"
    )
    parser.add_argument(
        "--only", choices=(*NAMES, *PARTS), help="the herds of one contestant, or another part"
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="DIR",
        help="also measure the herds of Horae as it is in another checkout",
    )
    parser.add_argument("--repeats", type=int, metavar="N", help="run every herd so many times")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    if arguments.sizes:
        effort = effort._replace(sizes=arguments.sizes)
    if arguments.peers_up_to:
        effort = effort._replace(peers_up_to=arguments.peers_up_to)
    if arguments.before:
        effort = effort._replace(before=str(arguments.before.resolve()))
    if arguments.repeats:
        effort = effort._replace(repeats=arguments.repeats, repeated_sizes=max(effort.sizes))
    # An end by `timeout` unwinds as well, or the PostgreSQL server would go on alone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Databases() as databases:
        version = databases.server_version()  # which starts the server, before several ask for it
        page = render(measure(databases, effort, arguments.only), effort, version)
    print(page)
    if arguments.write is not None:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text(page, "utf-8")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(size) for size in text.split(",")))


if __name__ == "__main__":
    main()
