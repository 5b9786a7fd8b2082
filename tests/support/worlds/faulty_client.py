"""A client whose connection is bad: calls fail, answers get lost, watches lag and break; kinds are
refused, lacking or slow to come.

Job: wrap a Client; do to it what Faults says at that moment; count lists and watches.
Invariant: what it lets through is what the real one answered; nothing is made up, and a watch that
    was cut has to be resumed or begun anew, as from any API server.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TypeVar

from sampan.api.errors import (
    ApiError,
    Conflict,
    Expired,
    InternalError,
    ServiceUnavailable,
    Timeout,
)
from sampan.api.objects import Obj
from sampan.api.resources import EVENTS, Resource
from sampan.client.contract import (
    NO_PARAMETERS,
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


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """After so many events: with an error, or cleanly where it is None."""

    events: int
    error: ApiError | None

    def is_due(self, count: int) -> bool:
        """After `count` events; raises the error it is to end with."""
        if count < self.events:
            return False
        if self.error is not None:
            raise self.error
        return True


@dataclass(slots=True)
class Faults:
    """What goes wrong with the next calls; shared by all clients of one control plane."""

    clock: Clock
    writes: deque[Fate] = field(default_factory=deque)  # of the next ones; then all goes well
    watches: set[str] = field(default_factory=set)  # which were ever opened
    silences: dict[str, float] = field(default_factory=dict)  # of watches, and until when
    cuts: dict[str, bool] = field(default_factory=dict)  # True: its revision is too old, too
    list_failures: deque[ApiError] = field(default_factory=deque)  # of the next ones
    watch_ends: deque[WatchEnd] = field(default_factory=deque)  # of the next ones to be opened
    refusals: dict[str, ApiError] = field(default_factory=dict)  # of every call about these kinds
    delays: dict[str, float] = field(default_factory=dict)  # of lists of these kinds, in seconds

    def stall(self, choice: int, seconds: float) -> None:
        """One kind of object lags behind the others."""
        if self.watches:
            name = sorted(self.watches)[choice % len(self.watches)]
            self.silences[name] = self.clock.monotonic() + seconds

    def cut(self, expired: bool) -> None:
        """Every watch ends with its next event, which it does not deliver."""
        self.cuts = dict.fromkeys(self.watches, expired)

    def fail_lists(self, errors: Iterable[ApiError]) -> None:
        self.list_failures.extend(errors)

    def fail_watch(self, after_events: int, error: ApiError | None) -> None:
        """The next watch ends after so many events: with `error`, or cleanly where it is None."""
        self.watch_ends.append(WatchEnd(after_events, error))

    def end(self) -> None:
        self.writes.clear()
        self.silences.clear()
        self.cuts.clear()
        self.list_failures.clear()
        self.watch_ends.clear()
        self.refusals.clear()
        self.delays.clear()

    def check(self, resource: Resource) -> None:
        """Raises what the kind is refused with."""
        error = self.refusals.get(resource.group_resource)
        if error is not None:
            raise type(error)(error.message)


class FaultyClient:
    def __init__(self, inner: Client, faults: Faults) -> None:
        self._inner, self._faults = inner, faults
        self.lists = self.watches = self.open_watches = 0

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> Obj:
        self._faults.check(resource)
        return await self._inner.get(
            resource, namespace, name, subresource=subresource, parameters=parameters
        )

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
        self.lists += 1
        faults = self._faults
        if faults.list_failures:
            raise faults.list_failures.popleft()
        faults.check(resource)
        if seconds := faults.delays.get(resource.group_resource):
            await faults.clock.sleep(seconds)
        return await self._inner.list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            revision=revision,
            page=page,
        )

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        return await self._inner.resources(group, version)

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
        self.watches += 1
        faults.check(resource)
        end = faults.watch_ends.popleft() if faults.watch_ends else None
        events = self._inner.watch(
            resource,
            namespace,
            revision=revision,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        count = 0
        self.open_watches += 1
        try:
            if end is not None and end.is_due(0):
                return
            async for event in events:
                while (left := faults.silences.get(name, 0.0) - faults.clock.monotonic()) > 0:
                    await faults.clock.sleep(left)
                if name in faults.cuts:
                    if faults.cuts.pop(name):
                        raise Expired("too old resource version")
                    raise ServiceUnavailable("the connection broke")
                yield event
                count += 1
                if end is not None and end.is_due(count):
                    return
        finally:
            self.open_watches -= 1
            await _close(events)

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        return await self._write(
            resource,
            lambda: self._inner.create(
                resource, obj, namespace, subresource=subresource, name=name
            ),
        )

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        return await self._write(
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
        return await self._write(
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
        return await self._write(
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

    async def _write(
        self, resource: Resource, write: Callable[[], Awaitable[T]], *, changes: bool = False
    ) -> T:
        faults = self._faults
        faults.check(resource)
        if resource == EVENTS:  # nobody's decisions depend on them
            return await write()
        fate = faults.writes.popleft() if faults.writes else Fate.FINE
        if fate is Fate.REFUSED or (fate is Fate.CONFLICT and not changes):
            # Creations and deletions are refused for who is there, not for being late.
            raise InternalError("etcdserver: request timed out")
        if fate is Fate.CONFLICT:
            raise Conflict("the object has been modified; please apply your changes to it")
        answer = await write()
        if fate is Fate.UNANSWERED:
            raise Timeout("the answer was lost")
        return answer


async def _close(events: AsyncIterator[WatchEvent]) -> None:
    """Ends the inner watch now, not when the garbage collector comes by."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
