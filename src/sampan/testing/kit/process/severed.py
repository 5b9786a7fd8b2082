"""A way to the API that can be cut: as a node's network.

Job: wrap the server as one user sees it; while it is cut, every call fails and watches end.
"""

import asyncio
from collections.abc import Sequence

from sampan.api.calls import Answer, Call, Event, ListAnswer
from sampan.api.errors import ServiceUnavailable
from sampan.api.resources import Resource
from sampan.client.inprocess import Backend, Watching


class SeveredBackend:
    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self._cut = asyncio.Event()

    def cut(self) -> None:
        self._cut.set()

    @property
    def is_cut(self) -> bool:
        return self._cut.is_set()

    def mend(self) -> None:
        self._cut = asyncio.Event()

    async def perform(self, call: Call) -> Answer | ListAnswer:
        self._check()
        return await self._inner.perform(call)

    async def watch(self, call: Call) -> Watching:
        self._check()
        return _SeveredWatch(await self._inner.watch(call), self._cut)

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        self._check()
        return self._inner.resources(group, version)

    def _check(self) -> None:
        if self._cut.is_set():
            raise ServiceUnavailable("the node's network is cut")


class _SeveredWatch:
    def __init__(self, inner: Watching, cut: asyncio.Event) -> None:
        self._inner, self._cut = inner, cut

    async def next(self) -> list[Event]:
        events = await self._inner.next()
        return [] if self._cut.is_set() else events

    def close(self) -> None:
        self._inner.close()
