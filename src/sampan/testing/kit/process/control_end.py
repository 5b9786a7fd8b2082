"""The cluster's end of a control socket.

Job: hear what the test's side asks for, have it done, answer; say when the other side is gone.
Invariant: each request is answered, with what was asked for or with one sentence.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sampan.api.errors import ApiError
from sampan.core.tasks import Tasks
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.testing.kit import messages
from sampan.testing.kit.spec import CannotStart

Message = dict[str, Any]
Action = Callable[[Message], Awaitable[Message]]


class ControlEnd:
    def __init__(
        self,
        loop: SteppedLoop,
        control: socket.socket,
        actions: Mapping[str, Action],
        other_side_gone: Callable[[], None],
    ) -> None:
        self._loop, self._control, self._actions = loop, control, actions
        self._other_side_gone = other_side_gone
        self._tasks = Tasks("control")
        self._kept = False
        # What is asked for by a socket of its own, which is then the one to answer through.
        self.when_enclosed: Callable[[Message, socket.socket], None] | None = None

    def follow(self) -> None:
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._hear)

    def take(self, control: socket.socket) -> None:
        """In a forked process: the other socket is the other's."""
        self._control.close()
        self._control = control

    def answer(self, request: Message, answer: Message) -> None:
        messages.send(self._control, {**answer, "id": request["id"]})

    def _hear(self) -> None:
        heard = messages.receive(self._control)
        if heard is None:
            self._loop.remove_reader(self._control)
            if not self._kept:
                self._other_side_gone()
            return
        request, enclosed = heard
        if enclosed is not None:
            assert self.when_enclosed is not None, request
            self.when_enclosed(request, enclosed)
        elif request["do"] == "keep":
            self._kept = True
            self.answer(request, {})
        else:
            self._tasks.start("command", self._perform(request))

    async def _perform(self, request: Message) -> None:
        try:
            answer = await self._actions[request["do"]](request)
        except (ApiError, CannotStart, KeyError, ValueError) as error:
            answer = {"error": str(error)}
        self.answer(request, answer)
