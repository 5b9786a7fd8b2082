"""Lock per key: one holder at a time, nothing kept for idle keys.

Job: a lock per key, without a table that grows.
Invariant: a key has a lock exactly while somebody holds it or waits for it.
Owner: whoever made it.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class LockPerKey:
    def __init__(self) -> None:
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def held(self, key: Hashable) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]
