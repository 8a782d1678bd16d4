"""Runs a program as on a platform that is not POSIX: ``python -m tests.support.without_posix FILE ARGUMENTS``.

Before the program imports anything, the modules of POSIX can no longer be imported, and its names in ``os`` and ``signal`` are gone. The
standard library knows which platform it is on, so what needs these names there is loaded first.
"""

import asyncio
import os
import runpy
import signal
import sqlite3
import subprocess
import sys

MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios")
NAMES = [
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "WEXITSTATUS", "WIFEXITED", "WIFSIGNALED", "WNOHANG",
    "WTERMSIG", "chown", "chroot", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
    "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "killpg", "lchown",
    "lockf", "mkfifo", "mknod", "nice", "openpty", "pidfd_open", "pipe2", "posix_spawn", "pread",
    "pwrite", "register_at_fork", "sched_getaffinity", "sched_yield", "sendfile", "setgid", "setpgid", "setpriority", "setsid",
    "setuid", "statvfs", "sync", "sysconf", "ttyname", "uname", "wait", "wait3", "wait4",
    "waitid",
]  # fmt: skip
SIGNALS_ELSEWHERE = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
LOADED = (asyncio, sqlite3, subprocess)


def hide_posix() -> None:
    """Take away what only POSIX has."""
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]  # so that importing it fails
    for name in NAMES:
        delattr(os, name)
    for name in [each for each in dir(signal) if each.startswith("SIG") and each not in SIGNALS_ELSEWHERE]:
        delattr(signal, name)
    if hasattr(os, "process_cpu_count"):  # since Python 3.13
        os.process_cpu_count = os.cpu_count  # as where a process cannot be bound to processors
    for name in ("alarm", "pause", "pthread_kill", "setitimer", "siginterrupt", "sigwait"):
        delattr(signal, name)


if __name__ == "__main__":
    hide_posix()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
