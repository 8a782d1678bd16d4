"""Measure, print the report, and write it to a file if one is named."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.report import measure, render
from bench.spec import FULL, QUICK


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Horae's speed beside its peers.")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the report to a Markdown file")
    parser.add_argument("--quick", action="store_true", help="few repeats: to see that it runs, not how fast")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    report = render(measure(effort), effort)
    print(report)
    if arguments.write is not None:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text(report, "utf-8")


if __name__ == "__main__":
    main()
