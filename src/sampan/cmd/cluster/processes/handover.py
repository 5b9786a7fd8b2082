"""What `sampan up --processes` hands over to a process that it starts, and hears from it.

Job: secrets and choices through a pipe that stays open for as long as the parent lives; one line
    back when the part is ready, or why it is not.
Invariant: no secret is in a process's arguments, in its environment or in a file.
Invariant: who loses its parent ends at once, as if killed together with it.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from sampan.cmd.settings import RuntimeChoice
from sampan.core.fast_dataclass import dataclass

FLAG = "--part"
READY = "ready"
NO_NODE: Mapping[str, str] = {}
_NODE = "node/"


def node_part(name: str) -> str:
    """The part that is one real node of several."""
    return f"{_NODE}{name}"


def node_in(part: str) -> str:
    """Its name; empty for other parts."""
    return part.removeprefix(_NODE) if part.startswith(_NODE) else ""


@dataclass(frozen=True, slots=True)
class PartPlace:
    """Which part a process is, and its ends of what it inherits."""

    part: str
    life: int  # the parent's words, then nothing until its end
    answer: int  # where it says that it is ready, or why not
    lock: int  # of the data directory: held until the last process has ended

    @property
    def word(self) -> str:
        return f"{FLAG}={self.part},{self.life},{self.answer},{self.lock}"


def place_in(word: str) -> PartPlace:
    """Of the flag's value."""
    part, *descriptors = word.split(",")
    life, answer, lock = (int(item) for item in descriptors)
    for descriptor in (life, answer, lock):
        os.set_inheritable(descriptor, False)  # whatever a part starts outlives it, or should
    return PartPlace(part, life, answer, lock)


@dataclass(frozen=True, slots=True)
class Handover:
    """What a part is told."""

    runtime: RuntimeChoice  # what `auto` came to
    secrets: Mapping[str, str]  # by part: its own, and to the API server everybody's
    node: Mapping[str, str] = NO_NODE  # of a part that is one of several: how it is known

    def send(self, descriptor: int) -> None:
        said = {"runtime": self.runtime, "secrets": dict(self.secrets), "node": dict(self.node)}
        with contextlib.suppress(BrokenPipeError):  # it has ended: its end is noticed elsewhere
            os.write(descriptor, json.dumps(said).encode() + b"\n")


def received(life: int) -> Handover:
    """Waits for the parent's line."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(life, 1)
        if not more:
            raise EOFError("the parent is gone")
        line += more
    said: dict[str, Any] = json.loads(line)
    return Handover(said["runtime"], said["secrets"], said["node"])


def end_with_parent(life: int) -> None:
    """Inside the running loop."""
    os.set_blocking(life, False)

    def gone() -> None:
        if not os.read(life, 1):
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.get_running_loop().add_reader(life, gone)


class Answer:
    """Given once: what comes after it concerns nobody who waits for a start."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def give(self, sentence: str) -> None:
        if self._descriptor >= 0:
            os.write(self._descriptor, sentence.replace("\n", " ").encode() + b"\n")
            os.close(self._descriptor)
            self._descriptor = -1
