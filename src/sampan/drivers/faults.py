"""Faults of a driver, from a file: for whoever wants to see what becomes of them.

Job: before each call, look what the file says of its method: fail, wait, or die.
Invariant: the file is read at each call: a test changes it while the driver runs.

    {"NodeStageVolume": {"code": "INTERNAL", "message": "the disk is gone", "times": 2},
     "NodePublishVolume": {"seconds": 5},
     "Allocate": {"die": "after"}}
"""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sampan.core.grpc.socket_server import Methods, Streaming, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger

Message = Any
log = get_logger(__name__)


class Faults:
    def __init__(self, path: str) -> None:
        """`path` empty: there are none."""
        self._path = path
        self._done: Counter[str] = Counter()

    def among(self, methods: Methods) -> Methods:
        if not self._path:
            return methods
        return {path: self._wrapped(path, method) for path, method in methods.items()}

    def _wrapped(self, path: str, method: Unary | Streaming) -> Unary | Streaming:
        name = path.rpartition("/")[2]
        if isinstance(method, Streaming):
            stream = method.handle

            async def answers(request: Message) -> AsyncIterator[Message]:
                await self._before(name)
                async for answer in stream(request):
                    yield answer

            return Streaming(method.request, answers)
        handle = method.handle

        async def answer(request: Message) -> Message:
            fault = await self._before(name)
            found = await handle(request)
            if fault.get("die") == "after":
                _die(name)
            return found

        return Unary(method.request, answer)

    async def _before(self, name: str) -> dict[str, Any]:
        fault = self._next(name)
        if fault.get("seconds"):
            await asyncio.sleep(float(fault["seconds"]))
        if fault.get("die") == "before":
            _die(name)
        if fault.get("code"):
            log.info("method fails by the fault file", method=name, code=fault["code"])
            raise GrpcFailure(str(fault.get("message") or "a fault"), code=fault["code"])
        return fault

    def _next(self, name: str) -> dict[str, Any]:
        try:
            fault: dict[str, Any] = json.loads(Path(self._path).read_text()).get(name) or {}
        except (OSError, ValueError):
            return {}
        key = f"{name} {json.dumps(fault, sort_keys=True)}"
        if not fault or self._done[key] >= int(fault.get("times") or 1 << 30):
            return {}
        self._done[key] += 1
        return fault


def _die(name: str) -> None:
    log.info("driver is killed by its fault file", method=name)
    os.kill(os.getpid(), signal.SIGKILL)
