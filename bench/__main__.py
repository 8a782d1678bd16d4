"""Measure, print the report, and write it to a file if one is named."""

from __future__ import annotations

from bench.page import parser, publish
from bench.report import measure, render
from bench.spec import FULL, QUICK


def main() -> None:
    options = parser("bench", "Horae's speed beside its peers.")
    options.add_argument(
        "--quick", action="store_true", help="few repeats: to see that it runs, not how fast"
    )
    given = options.parse_args()
    effort = QUICK if given.quick else FULL
    publish(render(measure(effort), effort), given.write)


if __name__ == "__main__":
    main()
