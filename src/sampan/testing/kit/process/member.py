"""A process that holds one cluster: a template that only waits to be forked, or one for a test.

Job: run the cluster's loop; do what the control socket asks for; fork, and go on in both.
Invariant: it ends when its control socket does: no cluster outlives its test.
Invariant: a fork has the state of the moment between two turns of the loop.
"""

import asyncio
import gc
import os
import shutil
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

from sampan.api.errors import ApiError
from sampan.core.tasks import Tasks
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.testing.kit import messages
from sampan.testing.kit.process.plane import Plane
from sampan.testing.kit.process.warm_up import touch
from sampan.testing.kit.spec import CannotStart

Message = dict[str, Any]
Command = Callable[[Plane, SteppedLoop, Message], Awaitable[Message]]


class Member:
    def __init__(
        self, loop: SteppedLoop, plane: Plane, control: socket.socket, commands: dict[str, Command]
    ) -> None:
        self._loop, self._plane, self._control = loop, plane, control
        self._commands = commands
        self._tasks = Tasks("control")
        self._fork: tuple[Message, socket.socket] | None = None
        self._kept = False
        loop.awaits_outside = plane.outside.awaited

    def run(self) -> NoReturn:
        self._follow_control()
        while True:
            self._loop.run_forever()
            if self._fork is not None:
                self._go_separate_ways(*self._fork)

    def serve(self, request: Message) -> None:
        """Listen, and say so to whoever asked for it."""
        self._loop.create_task(self._serve(request))  # the root of all tasks

    async def _serve(self, request: Message) -> None:
        port = await self._plane.listen()
        self._answer(request, {"port": port, "pid": os.getpid()})

    def _follow_control(self) -> None:
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._hear)

    def _hear(self) -> None:
        heard = messages.receive(self._control)
        if heard is None:
            self._loop.remove_reader(self._control)
            if not self._kept:
                os._exit(0)  # nothing of it is worth an orderly end
            return
        request, enclosed = heard
        match request["do"]:
            case "fork":
                assert enclosed is not None
                self._fork = (request, enclosed)
                self._loop.stop()
            case "keep":
                self._kept = True
                self._answer(request, {})
            case _:
                self._tasks.start("command", self._perform(request))

    async def _perform(self, request: Message) -> None:
        try:
            answer = await self._commands[request["do"]](self._plane, self._loop, request)
        except (ApiError, CannotStart, KeyError, ValueError) as error:
            answer = {"error": str(error)}
        self._answer(request, answer)

    def _answer(self, request: Message, answer: Message) -> None:
        messages.send(self._control, {**answer, "id": request["id"]})

    def _go_separate_ways(self, request: Message, control: socket.socket) -> None:
        self._fork = None
        if os.fork():
            control.close()
            return
        self._control.close()
        self._control = control
        self._loop.renew()
        self._plane.forget_connections()
        take_place(Path(request["dir"]), logs_of=Path.cwd())
        self._plane.rng.seed(request["seed"])
        self._follow_control()
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
    await touch(plane, keys)
    await loop.settle(0.5)
