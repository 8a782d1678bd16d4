"""The reader of pages notices what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reader import Reader
from tests.support.shown import Shown, as_here
from tests.support.wait import wait_for

WRONG = {
    "a block that is neither run nor saved": "```toml\na = 1\n```\n",
    "a text that no command printed": "```text\nhello\n```\n",
    "a program without a name": "Run this:\n\n```python\nprint()\n```\n",
    "a command that was never installed": "```sh\nhorae next '@daily'\n```\n",
    "a part that was not installed": "```sh\npip install horae\n```\n\n```sh\npython -c 'import httpx'\n```\n",
    "a package of the developer's": "```sh\npip install horae\n```\n\n```sh\npython -c 'import pytest'\n```\n",
    "a program of a part that was not installed": "```sh\npip install horae\n```\n\n```python\n# a.py\nimport httpx\n```\n\n```sh\npython a.py\n```\n",
    "a program of another package": "```sh\npip install 'horae[service]'\n```\n\n```python\n# a.py\nimport flask\n```\n\n```sh\npython a.py\n```\n",
    "a command that fails": "```sh\nfalse\ntrue\n```\n",
    "another output": "```console\n$ echo hello\ngoodbye\n```\n",
    "more output": "```console\n$ printf 'a\\nb\\n'\na\n```\n",
    "less output": "```console\n$ echo a\na\nb\n```\n",
}


@pytest.fixture
def reader(tmp_path: Path, wheel: Path) -> Reader:
    return Reader(tmp_path, wheel)


def page(folder: Path, text: str) -> str:
    (folder / "page.md").write_text(text)
    return str(folder / "page.md")


@pytest.mark.parametrize("what", WRONG)
def test_a_page_is_refused_for(reader: Reader, tmp_path: Path, what: str):
    with pytest.raises(AssertionError):
        reader.follow(page(tmp_path, WRONG[what]), {})


def test_a_page_is_followed(reader: Reader, tmp_path: Path):
    text = """
```sh
export NAME=ada
```

Save this as `greet.py`:

```python
import os
print("hello", os.environ["NAME"], "01a1e2ff-0338-8c14-af5f-62ea58553042".upper().lower())
```

```console
$ python greet.py
hello … 00000000-0000-0000-0000-000000000000
$ echo 00000000-0000-0000-0000-000000000000
01a1e2ff-0338-8c14-af5f-62ea58553042
```
"""
    reader.follow(page(tmp_path, text), {})
    assert "01a1e2ff-0338-8c14-af5f-62ea58553042\n" in reader.printed


def test_programs_begin_as_forks_and_end_with_their_clients(reader: Reader, tmp_path: Path):
    text = """
```sh
pip install horae flask
```

```python
# wait.py
import os, sys, threading, flask
print(os.getpid(), sys.prefix, flask.__file__, flush=True)
threading.Event().wait()
```

```sh
python wait.py
```
"""
    reader.follow(page(tmp_path, text), {})
    (running,) = reader.running
    wait_for(lambda: running.printed.endswith("\n"))
    child, prefix, package = running.printed.split()
    assert int(child) != running.process.pid
    assert package.startswith(prefix)
    reader.kill()
    wait_for(lambda: not Path(f"/proc/{child}").exists())


def test_a_gap_may_be_empty():
    assert Shown("slot … status\n…\n").find("slot   status\n") == {}
    assert Shown("slot … status").find("slot  to  slots  status") == {}
    assert Shown("slot … status").find("slots status") is None


def test_times_of_a_page_are_those_of_the_day():
    shown = Shown("slot (UTC)  took\n…\nMon 2026-11-16 06:15:45 +00:00  3ms\n")
    here = shown.find("slot (UTC)  took\nx\nTue 2027-01-05 10:00:00 +00:00  1m 2s\n")
    assert here == {"2026-11-16T06:15:45": "2027-01-05T10:00:00"}
    assert as_here("explain x 2026-11-16T06:15:45Z", here) == "explain x 2027-01-05T10:00:00Z"
    assert Shown("at 2026-11-16 06:15:45", exact=True).find("at 2027-01-05 10:00:00") is None
