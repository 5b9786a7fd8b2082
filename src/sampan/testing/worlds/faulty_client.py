"""A client whose connection is bad: writes fail, answers get lost, watches lag and break.

Job: wrap a Client; do to it what Faults says at that moment.
Invariant: what it lets through is what the real one answered; nothing is made up, and a watch that
    was cut has to be resumed or begun anew, as from any API server.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import field
from enum import Enum
from typing import TypeVar

from sampan.api.errors import Conflict, Expired, InternalError, ServiceUnavailable, Timeout
from sampan.api.objects import Obj
from sampan.api.resources import EVENTS, Resource
from sampan.client.contract import (
    NO_PRECONDITIONS,
    WHOLE,
    Client,
    Listed,
    Page,
    Patch,
    PatchType,
    Preconditions,
    Propagation,
    WatchEvent,
)
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass

T = TypeVar("T")


class Fate(Enum):
    """What becomes of one write."""

    FINE = "fine"
    CONFLICT = "conflict"  # somebody was faster
    REFUSED = "refused"  # for no reason of its own
    UNANSWERED = "unanswered"  # it is done, and nobody hears of it


@dataclass(slots=True)
class Faults:
    """What goes wrong with the next calls; shared by all clients of one control plane."""

    clock: Clock
    writes: deque[Fate] = field(default_factory=deque)  # of the next ones; then all goes well
    watches: set[str] = field(default_factory=set)  # which were ever opened
    stalled: dict[str, float] = field(default_factory=dict)  # until when a watch is silent
    cuts: dict[str, bool] = field(default_factory=dict)  # True: its revision is too old, too

    def stall(self, choice: int, seconds: float) -> None:
        """One kind of object lags behind the others."""
        if self.watches:
            name = sorted(self.watches)[choice % len(self.watches)]
            self.stalled[name] = self.clock.monotonic() + seconds

    def cut(self, expired: bool) -> None:
        """Every watch ends with its next event, which it does not deliver."""
        self.cuts = dict.fromkeys(self.watches, expired)

    def end(self) -> None:
        self.writes.clear()
        self.stalled.clear()
        self.cuts.clear()


class FaultyClient:
    def __init__(self, inner: Client, faults: Faults) -> None:
        self._inner, self._faults = inner, faults

    async def get(
        self, resource: Resource, namespace: str, name: str, *, subresource: str = ""
    ) -> Obj:
        return await self._inner.get(resource, namespace, name, subresource=subresource)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        revision: int | None = None,
        page: Page = WHOLE,
    ) -> Listed:
        return await self._inner.list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            revision=revision,
            page=page,
        )

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        faults, name = self._faults, resource.group_resource
        faults.watches.add(name)
        events = self._inner.watch(
            resource,
            namespace,
            revision=revision,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        async for event in events:
            while (left := faults.stalled.get(name, 0.0) - faults.clock.monotonic()) > 0:
                await faults.clock.sleep(left)
            if name in faults.cuts:
                if faults.cuts.pop(name):
                    raise Expired("too old resource version")
                raise ServiceUnavailable("the connection broke")
            yield event

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        return await self._written(
            resource,
            lambda: self._inner.create(
                resource, obj, namespace, subresource=subresource, name=name
            ),
        )

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        return await self._written(
            resource,
            lambda: self._inner.update(resource, obj, subresource=subresource),
            changes=True,
        )

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Patch,
        *,
        patch_type: PatchType = "strategic",
        subresource: str = "",
    ) -> Obj:
        return await self._written(
            resource,
            lambda: self._inner.patch(
                resource, namespace, name, patch, patch_type=patch_type, subresource=subresource
            ),
            changes=True,
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        propagation: Propagation | None = None,
    ) -> Obj:
        return await self._written(
            resource,
            lambda: self._inner.delete(
                resource,
                namespace,
                name,
                grace_seconds=grace_seconds,
                preconditions=preconditions,
                propagation=propagation,
            ),
        )

    async def _written(
        self, resource: Resource, write: Callable[[], Awaitable[T]], *, changes: bool = False
    ) -> T:
        faults = self._faults
        if resource == EVENTS:  # nobody's decisions depend on them
            return await write()
        fate = faults.writes.popleft() if faults.writes else Fate.FINE
        if fate is Fate.REFUSED or (fate is Fate.CONFLICT and not changes):
            # Creations and deletions are refused for who is there, not for being late.
            raise InternalError("etcdserver: request timed out")
        if fate is Fate.CONFLICT:
            raise Conflict("the object has been modified; please apply your changes to it")
        done = await write()
        if fate is Fate.UNANSWERED:
            raise Timeout("the answer was lost")
        return done
