"""A server whose clients have a hard time: what a fault plan says happens to their requests.

Job: wrap the handler of HTTP requests; note what was done to whom.
Invariant: the kit's own client meets no fault; what passes is what the server answered.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator

from sampan.api.errors import ApiError, Conflict, Expired, InternalError, TooManyRequests
from sampan.api.objects import Obj
from sampan.apiserver.http.replies import error_reply
from sampan.apiserver.outside.webhook_client import CallFailed
from sampan.core.clock import Clock
from sampan.core.http.messages import Handler, Reply, Request, Response, Stream
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.core.virtual_time.outside import closing
from sampan.testing.kit.objects import MANAGER
from sampan.testing.kit.process.fault_plan import Asked, FaultChoices, asked_of, fault_for

REMEMBERED = 20
SLOW_SECONDS, LATE_SECONDS = 1.0, 2.0
MOST_EVENTS = 5  # of a watch that is to be dropped


class FaultyEdge:
    def __init__(self, handler: Handler, clock: Clock) -> None:
        self._handler, self._clock = handler, clock
        self._chosen: FaultChoices | None = None
        self._asked: Counter[Asked] = Counter()
        self.injected: Counter[str] = Counter()
        self.last: deque[str] = deque(maxlen=REMEMBERED)

    def choose(self, chosen: FaultChoices | None) -> None:
        """From now on; None: no more faults."""
        self._chosen = chosen
        if chosen is not None:
            self._asked.clear()
            self.injected.clear()
            self.last.clear()

    async def __call__(self, request: Request) -> Reply:
        client = request.headers.get("user-agent", "")
        if self._chosen is None or client == MANAGER:
            return await self._handler(request)
        asked = asked_of(request.method, request.path, request.query, client)
        self._asked[asked] += 1
        fault, rng = fault_for(self._chosen, asked, self._asked[asked])
        if not fault:
            return await self._handler(request)
        self.injected[fault] += 1
        self.last.append(f"{fault}: {asked.verb} {asked.path} of {client}")
        if (refusal := _REFUSALS.get(fault)) is not None:
            return error_reply(refusal)
        if fault == "slow":
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SteppedLoop)
            await loop.machine_sleep(rng.random() * SLOW_SECONDS)  # its client waits in real time
        reply = await self._handler(request)
        match fault:
            case "lost":
                return _cut(reply)
            case "dropped" if isinstance(reply, Stream):
                events = _first(reply.chunks, rng.randint(1, MOST_EVENTS))
                return Stream(reply.status, reply.headers, events)
            case "duplicated" if isinstance(reply, Stream):
                return Stream(reply.status, reply.headers, _twice(reply.chunks))
            case "late" if isinstance(reply, Stream):
                events = self._late(reply.chunks, rng.random() * LATE_SECONDS)
                return Stream(reply.status, reply.headers, events)
        return reply

    async def hold_webhook(self, config: Obj, timeout_seconds: float) -> None:
        """Raises CallFailed, as late as a webhook that does not answer."""
        if self._chosen is None:
            return
        where = config.get("url") or "/".join(map(str, (config.get("service") or {}).values()))
        asked = Asked("webhook", "webhooks", where.partition("?")[0], where)
        self._asked[asked] += 1
        fault, _ = fault_for(self._chosen, asked, self._asked[asked])
        if fault:
            self.injected[fault] += 1
            self.last.append(f"{fault}: {where}")
            await self._clock.sleep(timeout_seconds)
            raise CallFailed(f'Post "{where}": context deadline exceeded')

    async def _late(self, chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
        async with closing(chunks):
            async for chunk in chunks:
                await self._clock.sleep(seconds)
                yield chunk


_REFUSALS: dict[str, ApiError] = {
    "conflict": Conflict("the object has been modified; please apply your changes to the latest "
                         "version and try again"),
    "throttled": TooManyRequests("the server has received too many requests and has asked us to "
                                 "try again later", retry_after_seconds=1),
    "error": InternalError("an error on the server has prevented the request from succeeding"),
    "expired": Expired("too old resource version"),
}  # fmt: skip


def _cut(reply: Reply) -> Reply:
    """What was asked for is done; the answer is not whole."""
    if not isinstance(reply, Response) or reply.status >= 400:
        return reply
    if reply.sent is not None:
        reply.sent()
    return Stream(reply.status, reply.headers, _half(reply.whole()))


async def _half(body: bytes) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2] or b" "
    raise ConnectionError("by the fault plan")


async def _twice(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async with closing(chunks):
        async for chunk in chunks:
            yield chunk
            yield chunk


async def _first(chunks: AsyncIterator[bytes], count: int) -> AsyncIterator[bytes]:
    async with closing(chunks):
        async for chunk in chunks:
            yield chunk
            count -= 1
            if count == 0:
                return
