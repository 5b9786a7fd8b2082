"""Leases for keys that expire, shared by keys that expire at nearly the same time.

Job: a lease for a key that shall live so many seconds.
Invariant: no key expires before its time, and none much later than that.
Owner: EtcdStore.
"""

import asyncio
from collections.abc import Awaitable, Callable

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass

# As upstream's lease manager: a cluster writes events by the thousand, and each lease costs etcd.
SHARE_SECONDS = 60  # a key may outlive its time by so much …
SHARE_FRACTION = 20  # … or by this part of it, whichever is shorter
KEYS_PER_LEASE = 1000  # they are deleted all at once

Grant = Callable[[int], Awaitable[int]]  # seconds → the id of a new lease


@dataclass(frozen=True, slots=True)
class Lease:
    id: int
    expires: float  # by the monotonic clock, at the earliest
    keys: int


class Leases:
    def __init__(self, clock: Clock, grant: Grant) -> None:
        self._clock, self._grant = clock, grant
        self._by_ttl: dict[int, Lease] = {}
        self._granting = asyncio.Lock()  # one new lease for all who wait for one

    async def of(self, ttl_seconds: int) -> int:
        async with self._granting:
            lease = self._by_ttl.get(ttl_seconds)
            if lease is None or not usable(lease, ttl_seconds, self._clock.monotonic()):
                lease = await self._new(ttl_seconds)
            self._by_ttl[ttl_seconds] = Lease(lease.id, lease.expires, lease.keys + 1)
            return lease.id

    def forget(self, lease_id: int) -> None:
        """etcd does not know it (any more)."""
        self._by_ttl = {ttl: item for ttl, item in self._by_ttl.items() if item.id != lease_id}

    async def _new(self, ttl_seconds: int) -> Lease:
        seconds = ttl_seconds + min(SHARE_SECONDS, ttl_seconds // SHARE_FRACTION)
        asked_at = self._clock.monotonic()  # etcd counts from later on
        return Lease(await self._grant(seconds), asked_at + seconds, 0)


def usable(lease: Lease, ttl_seconds: int, now: float) -> bool:
    return now + ttl_seconds <= lease.expires and lease.keys < KEYS_PER_LEASE
