"""cmd/cluster/process.py: what comes after what in a process that stays, and what the garbage
collector is told of it."""

import asyncio
import io
import os
import signal
import subprocess
import sys

import pytest

from sampan.api.errors import Timeout
from sampan.cmd.cluster import process
from sampan.cmd.cluster.process import run_alone, run_until_signal
from sampan.cmd.cluster.progress import Progress
from sampan.core.clock import SystemClock

SCRIPT = """
import gc
from sampan.cmd.cluster.process import settle_memory

class Node:
    pass

settle_memory()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
lost = Node()
lost.itself = lost
del lost
found = gc.collect(2)
print(found > 0, gc.get_freeze_count() - frozen >= 1000, gc.isenabled())
"""


@pytest.mark.slow
def test_what_outlived_a_search_is_not_searched_again_and_garbage_goes():
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["True"] * 3


GROWTH = """
import gc
from sampan.cmd.cluster.process import LOOKS, settle_memory

class Node:
    pass

def lose():
    lost = Node()
    lost.itself = lost

settle_memory()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
lose()
print(gc.collect(0) > 0, gc.get_freeze_count() == frozen)
for _ in range(LOOKS[1] - 1):
    lose()
    found = gc.collect(0)
print(found > 0, gc.get_freeze_count() - frozen >= 1000)
"""


@pytest.mark.slow
def test_what_outlived_a_look_is_not_looked_at_again_when_there_is_much_of_it():
    found = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["True"] * 4


class Seen:
    """Parts that note what is asked of them; SIGTERM comes while they do what `ends_in` says."""

    def __init__(self, ends_in):
        self.seen, self._ends_in = [], ends_in

    async def start(self):
        await self._note("start")

    async def start_rest(self):
        await self._note("rest")

    async def stop(self):
        self.seen.append("stop")

    def hurry(self):
        """Nobody asks twice here."""

    async def _note(self, step):
        self.seen.append(step)
        if step == self._ends_in:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
            self.seen.append("too late")

    def ready(self):
        self.seen.append("ready")
        if self._ends_in == "ready":
            os.kill(os.getpid(), signal.SIGTERM)


def run(parts, monkeypatch):
    monkeypatch.setattr(process, "settle_memory", lambda: parts.seen.append("settled"))
    progress = Progress(io.StringIO(), SystemClock())
    asyncio.run(run_until_signal(parts, progress, parts.ready, parts.start_rest))
    return parts.seen


@pytest.mark.parametrize(
    ("ends_in", "seen"),
    [
        ("start", ["start", "stop"]),
        ("ready", ["start", "ready", "rest", "settled", "stop"]),
        ("rest", ["start", "ready", "rest", "settled", "stop"]),
    ],
)
def test_ready_is_said_before_the_rest_starts_and_all_ends_with_a_stop(ends_in, seen, monkeypatch):
    assert run(Seen(ends_in), monkeypatch) == seen


def test_a_rest_that_fails_ends_the_process(monkeypatch):
    parts = Seen("nothing")

    async def fail():
        raise OSError("no room")

    parts.start_rest = fail
    with pytest.raises(OSError, match="no room"):
        run(parts, monkeypatch)
    assert parts.seen == ["start", "ready", "stop"]


def test_an_api_server_whose_store_falls_silent_as_it_starts_ends_with_one_sentence(capsys):
    """Its first objects are written after the store was opened."""
    parts = Seen("nothing")

    async def fail():
        raise Timeout("the server's store does not answer: etcd took too long")

    parts.start = fail
    progress = Progress(io.StringIO(), SystemClock())
    assert run_alone(parts, progress, "", lambda: "ready") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("sampan: the cluster's own objects cannot be stored: ")
    assert line.endswith("the server's store does not answer: etcd took too long")
    assert parts.seen == ["stop"]
