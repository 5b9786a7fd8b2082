"""The client for parts that run in the server's own process: calls instead of requests.

Job: client.contract.Client over a Backend that is bound to one user.
Invariant: what it returns is the server's own, read-only; what it is given is not kept.
Invariant: a write is as large as it would be on the wire, and is done where such a one is.
Invariant: whoever reads object after object lets others have the loop in between, as on the wire.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import orjson

from sampan.api import convert
from sampan.api.calls import Answer, Call, Event, ListAnswer, Options
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource
from sampan.client.contract import (
    NO_PARAMETERS,
    NO_PRECONDITIONS,
    WHOLE,
    Listed,
    Page,
    Patch,
    PatchType,
    Preconditions,
    Propagation,
    WatchEvent,
)
from sampan.core.tasks import give_way

# No connection of ours can hang, and no server be overloaded by those that it keeps: there is no
# reason to begin anew, nor to be told from where.
LONGEST_WATCH_SECONDS = 100 * 365 * 86400
PART = 20_000  # of a list, in one go
UNKNOWN_SIZE = 1024 * 1024  # of what cannot be measured
BYTES_PER_TURN = 1024 * 1024  # of what is written
READS_PER_TURN = 32  # of the loop: nothing is waited for in a read


class Watching(Protocol):
    """An open watch. Whoever opened it closes it."""

    async def next(self) -> list[Event]:
        """What happened since, in order; empty when the watch has ended."""

    def close(self) -> None: ...


class Backend(Protocol):
    """The API server, seen by one user in the same process."""

    async def perform(self, call: Call) -> Answer | ListAnswer: ...

    async def watch(self, call: Call) -> Watching: ...

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        """Raises ApiError."""


class InProcessClient:
    def __init__(self, backend: Backend, field_manager: str = "") -> None:
        self._backend = backend
        self._write = Options(field_manager=field_manager, field_validation="Ignore")
        self._manager = field_manager
        self._reads = 0  # in this turn of the loop
        self._written = 0  # bytes, likewise

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> Obj:
        self._in_turn()
        self._reads += 1
        if self._reads > READS_PER_TURN:
            await give_way()
        if not parameters:
            return await self._object(Call("get", resource, namespace, name, subresource))
        options = Options(parameters=tuple(parameters.items()))
        return await self._object(
            Call("get", resource, namespace, name, subresource, options=options)
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
        options = Options(
            resource_version="" if revision is None else str(revision),
            label_selector=label_selector,
            field_selector=field_selector,
            limit=page.limit,
            continue_token=page.continue_token,
        )
        answer = await self._backend.perform(Call("list", resource, namespace, options=options))
        assert isinstance(answer, ListAnswer)
        items: list[Obj] = []
        for first in range(0, len(answer.items), PART):
            if first:
                await asyncio.sleep(0)
            items += [item.obj for item in answer.items[first : first + PART]]
        if resource.stored_in != ("", ""):
            items = [convert.from_stored(resource, obj) for obj in items]
        return Listed(items, answer.revision, answer.continue_token)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        options = Options(
            resource_version=str(revision),
            label_selector=label_selector,
            field_selector=field_selector,
            timeout_seconds=LONGEST_WATCH_SECONDS,
        )
        watching = await self._backend.watch(Call("watch", resource, namespace, options=options))
        try:
            while events := await watching.next():
                for event in events:
                    bookmark = event.type == "BOOKMARK"
                    obj = event.item.obj if bookmark else _in_version(resource, event.item.obj)
                    yield WatchEvent(event.type, obj)
        finally:
            watching.close()

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        return self._backend.resources(group, version)

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        where = (namespace or namespace_of(obj)) if resource.namespaced else ""
        size = await self._measured(obj)
        return await self._object(
            Call("create", resource, where, name, subresource, obj, self._write, size=size)
        )

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        where = namespace_of(obj) if resource.namespaced else ""
        named, size = name_of(obj), await self._measured(obj)
        return await self._object(
            Call("update", resource, where, named, subresource, obj, self._write, size=size)
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
        size = await self._measured(patch)
        options = Options(
            patch_type=patch_type,
            field_manager=self._manager,
            force=True if patch_type == "apply" else None,  # as over the wire
            field_validation="Ignore",
        )
        return await self._object(
            Call("patch", resource, namespace, name, subresource, patch, options, size=size)
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
        options = Options(
            grace_seconds=grace_seconds,
            precondition_uid=preconditions.uid,
            precondition_resource_version=str(preconditions.revision or ""),
            propagation=propagation or "",
        )
        return await self._object(Call("delete", resource, namespace, name, options=options))

    async def _measured(self, body: object) -> int:
        """Its size, as on the wire: a controller's pods are as large as somebody's template, and
        many are made at once."""
        self._in_turn()
        if self._written > BYTES_PER_TURN:
            await give_way()
        size = _size_of(body)
        self._written += size
        return size

    def _in_turn(self) -> None:
        if not self._reads and not self._written:
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._reads = self._written = 0

    async def _object(self, call: Call) -> Obj:
        answer = await self._backend.perform(call)
        assert isinstance(answer, Answer)
        return answer.obj


def _size_of(body: object) -> int:
    try:
        return len(orjson.dumps(body))
    except (TypeError, ValueError):
        return UNKNOWN_SIZE  # numbers and texts that only some writers can print


def _in_version(resource: Resource, obj: Obj) -> Obj:
    return obj if resource.stored_in == ("", "") else convert.from_stored(resource, obj)
