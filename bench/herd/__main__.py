"""Let the contestants run, print the page, and write it to a file if one is named."""

from __future__ import annotations

from pathlib import Path

from bench.herd.contestant import NAMES
from bench.herd.measure import FULL, PARTS, QUICK, measure
from bench.herd.report import render
from bench.herd.server import Databases
from bench.page import parser, publish


def main() -> None:
    options = parser("bench.herd", "A herd of jobs due at one instant.")
    add = options.add_argument
    add("--quick", action="store_true", help="a small herd: to see that it runs, not how fast")
    add("--sizes", type=_sizes, metavar="N,…", help="how many jobs, instead of 1000,10000,100000")
    add("--peers-up-to", type=int, metavar="N", help="the largest herd of the peers, instead of 10000")
    add("--only", choices=(*NAMES, *PARTS), help="the herds of one contestant, or another part")
    add("--before", type=Path, metavar="DIR", help="also measure the herds of Horae in another checkout")
    add("--repeats", type=int, metavar="N", help="run every herd so many times")
    given = options.parse_args()
    effort = QUICK if given.quick else FULL
    if given.sizes:
        effort = effort._replace(sizes=given.sizes)
    if given.peers_up_to:
        effort = effort._replace(peers_up_to=given.peers_up_to)
    if given.before:
        effort = effort._replace(before=str(given.before.resolve()))
    if given.repeats:
        effort = effort._replace(repeats=given.repeats, repeated_sizes=max(effort.sizes))
    with Databases() as databases:
        version = databases.server_version()  # which starts the server, before several ask for it
        page = render(measure(databases, effort, given.only), effort, version)
    publish(page, given.write)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(size) for size in text.split(",")))


if __name__ == "__main__":
    main()
