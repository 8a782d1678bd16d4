"""Have PostgreSQL count its rows: ``python -m bench.herd.analyze URL``.

It does so by itself within a minute or so of a large change, and its plans are made by these counts. A herd
that is due seconds after it was registered would otherwise depend on whether that minute had passed. A
process of its own, so that no contestant's memory holds it.
"""

from __future__ import annotations

import asyncio
import sys

import asyncpg


async def main(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("ANALYZE")
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
