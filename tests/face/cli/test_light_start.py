"""What starts loads little: counted in modules, in new interpreters, beside the libraries that the command is made of."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

from tests.support.process import ROOT, environment

PEERS = "import msgspec, typer"
COMMAND = "from horae.face.cli import main; main()"
STARTS = {
    "import horae": ("import horae", ()),
    "horae --help": (COMMAND, ("--help",)),
    "horae next": (COMMAND, ("next", "30 2 * * *", "--tz", "Europe/Berlin", "--every", "90m")),
}
AT_MOST = {"import horae": 1.5, "horae --help": 2.0, "horae next": 2.0}
"""How many times what the peers load."""
BESIDE_PYTHON = {"import horae": 46, "horae --help": 133, "horae next": 134}
"""How many modules are loaded that are not Python's own: on the oldest Python, which needs most. These numbers may only fall."""
FEWER = 3
"""How many fewer another Python, or other versions of the libraries, may load."""


@functools.cache
def loaded(code: str, arguments: tuple[str, ...] = ()) -> frozenset[str]:
    """The modules that a new interpreter has loaded at the end of a program, beyond those that it starts with."""
    program = (
        f"import sys, atexit; sys.path.insert(0, {str(ROOT / 'src')!r}); sys.argv = ['horae', *{arguments!r}]; before = {{*sys.modules}}\n"
        f"atexit.register(lambda: print(*({{*sys.modules}} - before), file=sys.stderr))\n{code}"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        timeout=60,
    )
    return frozenset(ran.stderr.split())


@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_little_beside_its_libraries(start: str):
    modules = loaded(*STARTS[start])
    assert len(modules) <= AT_MOST[start] * len(loaded(PEERS)), sorted(modules - loaded(PEERS))


@pytest.mark.parametrize("start", STARTS)
def test_what_a_start_loads_only_falls(start: str):
    others = {
        each for each in loaded(*STARTS[start]) if each.partition(".")[0] not in sys.stdlib_module_names
    }
    fewer = BESIDE_PYTHON[start] - len(others)
    assert fewer >= 0, sorted(others)
    assert fewer <= FEWER, "what loads less than before: lower its number"


def test_what_no_help_shows_is_loaded_when_it_is_used():
    """Typer's help imports what renders Markdown; only then does an empty module stand for it."""
    help_loaded = "from horae.face.cli.light_help import load_help; load_help()"
    assert not {"markdown_it", "pygments", "rich.markdown"} & loaded(help_loaded)
    assert {"typer.rich_utils", "markdown_it"} <= loaded(
        f"{help_loaded}; import rich.markdown as m; m.Markdown('*a*')"
    )
