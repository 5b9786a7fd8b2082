"""Processes that are killed at a step of their way: every function that it enters is a fault point.

Job: run work in a child of its own, note the functions that it enters and leaves, kill -9 it there.
"""

import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

LIFE_SECONDS = 300  # at most
Hook = Callable[[int], None]  # what is set up in the child; with where it writes to


def in_child(work: Callable[[int], object]) -> tuple[int, list[str]]:
    """A process for each agent: gRPC does not outlive a fork. How it ended, and what it wrote."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 70
        try:
            signal.alarm(LIFE_SECONDS)
            work(write)
            code = 0
        except BaseException:  # pytest's own output is the parent's
            os.write(write, traceback.format_exc().encode())
        finally:
            sys.setprofile(None)
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as said:
        lines = said.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lines


def noting(watched: Sequence[str], times: int = 1) -> Hook:
    """Fault points are written in their order. `watched`: parts of file names; `times`: how often
    the same function is one."""

    def hook(write: int) -> None:
        _at_functions(watched, times, lambda point: os.write(write, f"{point}\n".encode()))

    return hook


def killed_at(watched: Sequence[str], wanted: str, times: int = 1) -> Hook:
    def note(point: str) -> None:
        if point == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda _write: _at_functions(watched, times, note)


def untouched(_write: int) -> None:
    """Nobody is killed."""


def _at_functions(watched: Sequence[str], times: int, note: Callable[[str], object]) -> None:
    seen: Counter[str] = Counter()

    def look(frame: Any, event: str, _argument: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not any(part in code.co_filename for part in watched):
            return
        point = f"{event} {code.co_filename.rpartition('/sampan/')[2]}:{code.co_qualname}"
        seen[point] += 1
        if seen[point] <= times:
            note(f"{point} {seen[point]}")

    threading.setprofile(look)
    sys.setprofile(look)
