"""Processor time of one piece of work, whatever else the process and the machine have to do.

Job: seconds of this thread on a processor. The collector of garbage does not run meanwhile: in a
    worker of the suite it may find what thousands of other tests have left.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Spent:
    seconds = 0.0


@contextmanager
def without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def spent() -> Iterator[Spent]:
    """Its `seconds` are there afterwards."""
    found = Spent()
    with without_collector():
        began = time.thread_time()
        try:
            yield found
        finally:
            found.seconds = time.thread_time() - began


def quickest_seconds(work: Callable[[], object], tries: int = 3) -> float:
    """Of some tries: what the machine does to one of them, it does not do to all."""
    found = []
    for _ in range(tries):
        with spent() as one:
            work()
        found.append(one.seconds)
    return min(found)
