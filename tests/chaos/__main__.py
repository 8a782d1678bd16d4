"""``python -m tests.chaos --seconds 1800 --seed 7 --store both``: exit code 0 if all that is promised held."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import Settings, run_campaign
from tests.chaos.checker import check
from tests.chaos.fleet import fleet
from tests.chaos.plan import WEIGHTS
from tests.chaos.report import report_lines


async def campaign(settings: Settings) -> bool:
    """Whether a campaign was clean. Its files are kept if it was not."""
    evidence = await run_campaign(settings)
    findings = check(evidence, fleet())
    sys.stdout.write("\n".join(report_lines(settings, evidence, findings)) + "\n")
    sys.stdout.flush()
    if findings.problems:
        return False
    await asyncio.to_thread(shutil.rmtree, settings.folder)
    return True


async def main(stores: list[str], seconds: float, seed: int) -> bool:
    """Campaigns on several stores go on at the same time. Asked to end, they end their nodes and servers first."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    wanted = [
        Settings(store, seconds, seed, Path(tempfile.mkdtemp(prefix=f"horae-chaos-{store}-")))
        for store in stores
    ]
    return all(await asyncio.gather(*(campaign(settings) for settings in wanted)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long things go wrong")
    parser.add_argument("--seed", type=int, default=1, help="from which all that goes wrong follows")
    parser.add_argument("--store", choices=[*WEIGHTS, "both"], default="both")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # that the operator loses the database is no news
    chosen = [*WEIGHTS] if arguments.store == "both" else [arguments.store]
    sys.exit(not asyncio.run(main(chosen, arguments.seconds, arguments.seed)))
