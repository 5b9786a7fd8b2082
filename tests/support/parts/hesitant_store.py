"""A store that makes its callers wait before and after everything it does.

Job: the memory store, as a remote one feels: every call is left and come back to, twice.
Invariant: it fulfils the store's contract (tests/contract/test_store.py).
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from sampan.store.contract import Entry, Page
from sampan.store.memory import MemoryStore

T = TypeVar("T")


class HesitantStore(MemoryStore):
    shared = True
    _under_way = 0

    async def current_revision(self) -> int:
        return await self._slowly(super().current_revision())

    async def get(self, key: str) -> Entry | None:
        return await self._slowly(super().get(key))

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        found = super().range(prefix, start=start, limit=limit, revision=revision)
        return await self._slowly(found)

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        return await self._slowly(super().create(key, value, ttl_seconds=ttl_seconds))

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        write = super().update(key, value, expected_revision, ttl_seconds=ttl_seconds)
        return await self._slowly(write)

    async def delete(self, key: str, expected_revision: int) -> int:
        return await self._slowly(super().delete(key, expected_revision))

    async def close(self) -> None:
        while self._under_way:
            await _hesitate()
        await super().close()

    async def _slowly(self, work: Coroutine[Any, Any, T]) -> T:
        self._under_way += 1
        try:
            await _hesitate()
            done = await work
            await _hesitate()
        finally:
            work.close()
            self._under_way -= 1
        return done


async def _hesitate() -> None:
    # A future, not a bare turn of the loop: that is what is waited for, and cancelled, elsewhere.
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(_pass, passed)
    await passed


def _pass(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)
