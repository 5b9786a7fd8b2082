"""A process that holds one cluster: a template that only waits to be forked, or one for a test.

Job: run the cluster's loop; fork, and go on in both.
Invariant: it ends when its control socket does: no cluster outlives its test.
Invariant: a fork has the state of the moment between two turns of the loop.
"""

import asyncio
import gc
import os
import shutil
import socket
from pathlib import Path
from typing import NoReturn

from sampan.core.virtual_time.loop import SteppedLoop
from sampan.testing.kit.process.commands import actions_of
from sampan.testing.kit.process.control_end import ControlEnd, Message
from sampan.testing.kit.process.plane import Plane
from sampan.testing.kit.process.warm_up import touch


class Member:
    def __init__(self, loop: SteppedLoop, plane: Plane, control: socket.socket) -> None:
        self._loop, self._plane = loop, plane
        # Nothing of it is worth an orderly end.
        self._control = ControlEnd(loop, control, actions_of(plane, loop), self._end)
        self._control.when_enclosed = self._note_fork
        self._fork: tuple[Message, socket.socket] | None = None

    def run(self) -> NoReturn:
        self._control.follow()
        while True:
            self._loop.run_forever()
            if self._fork is not None:
                self._go_separate_ways(*self._fork)

    def serve(self, request: Message) -> None:
        """Listen, and say so to whoever asked for it."""
        self._loop.create_task(self._serve(request))  # the root of all tasks

    async def _serve(self, request: Message) -> None:
        port = await self._plane.listen()
        self._control.answer(request, {"port": port, "pid": os.getpid()})

    def _end(self) -> NoReturn:
        self._plane.guarded.kill()
        os._exit(0)

    def _note_fork(self, request: Message, control: socket.socket) -> None:
        self._fork = (request, control)
        self._loop.stop()

    def _go_separate_ways(self, request: Message, control: socket.socket) -> None:
        self._fork = None
        if os.fork():
            control.close()
            return
        self._control.take(control)
        self._loop.renew()
        self._plane.forget_connections()
        take_place(Path(request["dir"]), logs_of=Path.cwd())
        self._plane.rng.seed(request["seed"])
        self._control.follow()
        self.serve(request)


def take_place(directory: Path, logs_of: Path | None = None) -> None:
    """Work in a directory of its own from now on (see plane.HERE)."""
    if logs_of is not None and (logs_of / "logs").exists():
        shutil.copytree(logs_of / "logs", directory / "logs")
    os.chdir(directory)


def start(loop: SteppedLoop, plane: Plane, keys: Path) -> None:
    """Until there is nothing left to do; then everything there is stays, in this process and in
    those that are forked from it."""
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_started(loop, plane, keys))
    gc.collect()
    gc.freeze()
    gc.enable()


async def _started(loop: SteppedLoop, plane: Plane, keys: Path) -> None:
    plane.check()
    await plane.start()
    await loop.settle(0.5)
    await touch(plane, keys)
    await loop.settle(0.5)
