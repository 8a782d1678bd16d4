"""Tasks of a Celery worker under test. The environment says where Redis is, and the file that tasks write to."""

import os
import time
from pathlib import Path

from celery import Celery

from horae.executor.celery_executor import start_once

REDIS = os.environ.get("HORAE_TEST_REDIS", "redis://127.0.0.1:1/0")
app = Celery("tests", broker=REDIS, backend=REDIS)
app.conf.update(
    broker_connection_retry_on_startup=True, broker_transport_options={"socket_timeout": 5, "max_retries": 0}
)
start_once(app)


def note(word: str) -> None:
    with Path(os.environ["HORAE_TEST_LOG"]).open("a") as file:
        file.write(f"{word}\n")


@app.task(name="add")  # type: ignore[untyped-decorator]
def add(x: int, y: int) -> int:
    note(f"add {x} {y}")
    return x + y


@app.task(name="boom")  # type: ignore[untyped-decorator]
def boom() -> None:
    note("boom")
    raise ValueError("no")


@app.task(name="slow")  # type: ignore[untyped-decorator]
def slow(who: str) -> None:
    note(f"slow begins {who}")
    time.sleep(60)
    note(f"slow ends {who}")


@app.task(name="large")  # type: ignore[untyped-decorator]
def large() -> str:
    return "." * 1024 * 1024
