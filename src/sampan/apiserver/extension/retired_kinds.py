"""Custom kinds whose definition is gone: what is remembered of them goes, too.

Job: let the watch cache forget a kind that nobody defines, watches or has objects of any more.
Invariant: a kind that is defined again meanwhile keeps all that it has.
"""

import asyncio
from collections.abc import Sequence

from sampan.api.custom.custom_version import custom_of
from sampan.api.resources import Resource
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.watch.watch_cache import WINDOW_SECONDS
from sampan.core.clock import Clock

Kind = tuple[str, str]  # group and plural


class RetiredKinds:
    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry, self._clock = registry, clock
        self._since: dict[Kind, tuple[float, Resource]] = {}  # the oldest first
        self._any = asyncio.Event()

    def defined(self, resource: Resource) -> None:
        self._since.pop(_kind(resource), None)

    def gone(self, rows: Sequence[Resource]) -> None:
        """All that was served by the definition."""
        for row in rows:
            custom = custom_of(row)
            if custom is not None:
                custom.forget_compiled()
        self._retire(rows[0])

    def _retire(self, resource: Resource) -> None:
        self._since.pop(_kind(resource), None)
        self._since[_kind(resource)] = self._clock.monotonic(), resource
        self._any.set()

    async def run(self) -> None:
        """Each goes when nobody can be in the middle of something with it any more."""
        while True:
            await self._any.wait()
            while self._since:
                kind, (since, resource) = next(iter(self._since.items()))
                rest = since + WINDOW_SECONDS - self._clock.monotonic()
                if rest > 0:
                    await self._clock.sleep(rest)
                    continue
                del self._since[kind]
                if not self._registry.let_go(resource):
                    self._retire(resource)
            self._any.clear()


def _kind(resource: Resource) -> Kind:
    return resource.group, resource.plural
