"""The command, run in this process or as one of its own."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from horae.face.cli import main
from tests.support.process import ROOT, fork_server

PLAIN = {
    "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "COLUMNS": "200", "LANG": "C.UTF-8", "HOME": "/nowhere",
    "PYTHONPATH": str(ROOT / "src"),
}  # fmt: skip


def horae(
    *arguments: str, stdin: str = "", folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in this process, as starting one takes much longer. It never shows a traceback.

    Not for ``horae serve`` beyond its settings: it sees to it that its process ends, which would be that of the tests.
    It works in a folder, or an empty one.
    """
    given, out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(3))
    given.write(stdin)
    given.seek(0)
    status: object = 0
    with (
        mock.patch.dict(os.environ, PLAIN | environment, clear=True),
        mock.patch.object(sys, "argv", ["horae", *arguments]),
        mock.patch.object(sys, "stdin", given),
        redirect_stdout(out),
        redirect_stderr(err),
        tempfile.TemporaryDirectory() as empty,
        chdir(folder or empty),
        warnings.catch_warnings(action="ignore", category=DeprecationWarning),  # as in a process
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        finally:
            logging.disable(logging.NOTSET)  # it had silenced the log of its process
    assert isinstance(status, int), status
    return without_traceback(subprocess.CompletedProcess(arguments, status, written_to(out), written_to(err)))


def written_to(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def horae_process(
    *arguments: str, stdin: str = "", folder: Path | None = None, forks: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The same as a process, for what only a process shows; one that ``forks`` need not load Horae."""
    ran = subprocess.run(
        [fork_server().python if forks else sys.executable, "-m", "horae", *arguments],
        input=stdin, capture_output=True, text=True, timeout=120, check=False, cwd=folder, env=PLAIN | environment,
    )  # fmt: skip
    return without_traceback(ran)


def without_traceback(ran: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert "Traceback" not in ran.stderr, ran.stderr  # an answer may have that of an action
    assert "bug in Horae" not in ran.stderr, ran.stderr
    return ran


def answered(*arguments: str, **more: Any) -> Any:
    """What the command answers with ``--json``; its standard error stays empty."""
    ran = horae(*arguments, "--json", **more)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return json.loads(ran.stdout)


def refused(*arguments: str, **more: Any) -> dict[str, Any]:
    """The error that the command answers with ``--json``; nothing is on standard output, and the exit status is 2."""
    ran = horae(*arguments, "--json", **more)
    assert ran.returncode == 2, ran.stdout
    assert ran.stdout == ""
    problem: dict[str, Any] = json.loads(ran.stderr)
    assert set(problem) == {"error", "message", "details", "hint"}
    return problem
