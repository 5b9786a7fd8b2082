"""The life of CustomResourceDefinitions: accepted, served, and taken out of service.

Job: follow the definitions, keep the kinds that they define, write their status, remove their
    objects before they go.
Invariant: a definition is served from the moment that its status says Established, and no longer
    than it is there.
Invariant: a definition goes only after the last of its objects.
Owner: one task; the kinds change in the very step in which the watch cache has the definition.
"""

import asyncio
from collections.abc import Callable

from sampan.api.calls import Call, Item
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, is_deleted, meta_of, name_of
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from sampan.api.resources import Resource
from sampan.api.rules.conditions import is_true
from sampan.apiserver.authn.user import MASTERS, User, with_authenticated_group
from sampan.apiserver.extension.accepted_names import told, wanted_status
from sampan.apiserver.extension.definition_rows import rows_of
from sampan.apiserver.registry.custom_resource_definitions import CLEANUP
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.watch.followed import follow
from sampan.apiserver.write.delete import delete
from sampan.apiserver.write.parts import Parts
from sampan.apiserver.write.update import Modification, modify
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks

log = get_logger(__name__)

RETRY_SECONDS = 1.0
AT_ONCE = 64  # deletions under way
_DELETING = (
    "Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress",
)  # fmt: skip
_SERVER = with_authenticated_group(User("system:apiserver", (MASTERS,)))
_AGENT = "kube-apiserver/v1.35"


class Definitions:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._registry = registry = parts.registry
        self._kinds, self._published = registry.kinds, parts.schema
        self._clock = parts.clock
        self._dirty: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._tasks = Tasks("custom-resource-definitions")
        self._listeners: list[Callable[[], None]] = []
        follow(registry.kind(DEFINITIONS), self._changed, self._reloaded)

    def when_changed(self, listener: Callable[[], None]) -> None:
        """Called whenever the served kinds are others than before."""
        self._listeners.append(listener)

    async def start(self) -> None:
        self._reloaded()
        self._tasks.supervise("sync", self._run)

    async def stop(self) -> None:
        await self._tasks.stop()

    # In the step in which the watch cache changes

    def _changed(self, before: Item | None, now: Item | None) -> None:
        if now is None:
            assert before is not None
            self._serve(name_of(before.obj), ())
            self._mark_group(before.obj)
            return
        name = name_of(now.obj)
        known = self._kinds.of_definition(name)
        self._serve(name, rows_of(now.obj, self._published, known))
        self._mark(name)
        if before is None or _names(before.obj) != _names(now.obj):
            self._mark_group(now.obj)

    def _serve(self, name: str, rows: tuple[Resource, ...]) -> None:
        before = {item.version: item for item in self._kinds.of_definition(name)}
        changed = self._kinds.replace(name, rows)
        if any(
            _token(rows, version) is not _token((old,), version) for version, old in before.items()
        ):
            # Whoever watches must list again: what it has seen is not how it is shown now.
            self._registry.kind(next(iter(before.values()))).end_watchers()
        if changed or rows or before:
            for listener in self._listeners:
                listener()

    def _reloaded(self) -> None:
        """At the start, and when the cache has been read anew."""
        found = self._registry.find_all(DEFINITIONS)
        for name in {item.group_resource for item in self._kinds.custom()} - set(
            map(name_of, found)
        ):
            self._serve(name, ())
        for definition in found:
            known = self._kinds.of_definition(name_of(definition))
            self._serve(name_of(definition), rows_of(definition, self._published, known))
            self._mark(name_of(definition))

    def _mark_group(self, definition: Obj) -> None:
        """Those that wait for a name of this one."""
        group = definition["spec"]["group"]
        for item in self._registry.find_all(DEFINITIONS):
            if item["spec"]["group"] == group and not is_true(item, "NamesAccepted"):
                self._mark(name_of(item))

    def _mark(self, name: str) -> None:
        self._dirty[name] = None
        self._wake.set()

    # The task

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            names, self._dirty = list(self._dirty), {}
            for name in names:
                try:
                    await self._sync(name)
                except (ApiError, Stale) as error:
                    log.warning("custom resource definition not synced", name=name, error=error)
                    await self._clock.sleep(RETRY_SECONDS)
                    self._mark(name)

    async def _sync(self, name: str) -> None:
        item = self._registry.kind(DEFINITIONS).items.get(name)
        if item is None:
            return
        if is_deleted(item.obj):
            await self._finalize(item)
            return
        status = wanted_status(item.obj, self._registry.find_all(DEFINITIONS), self._clock.now())
        if status != item.obj.get("status"):
            await self._write_status(name, status)

    async def _write_status(self, name: str, status: Obj) -> None:
        """Over whatever the definition is by then: only its status is ours."""
        call = Call("update", DEFINITIONS, "", name, "status", agent=_AGENT)
        change = Modification(lambda old: {**_shallow(old), "status": status})
        await modify(self._parts, _SERVER, call, change)

    async def _finalize(self, item: Item) -> None:
        """Remove the objects, then let the definition go."""
        meta = meta_of(item.obj)
        finalizers = list(meta.get("finalizers") or ())
        if CLEANUP not in finalizers:
            return
        rows = self._kinds.of_definition(name_of(item.obj))
        if rows:
            if _reason(item.obj) != _DELETING[2]:
                deleting = told(item.obj, _DELETING, self._clock.now())
                await self._write_status(name_of(item.obj), deleting["status"])
                return  # and again, with what was written
            if not await self._empty(rows[0]):
                self._later(name_of(item.obj))
                return
        finalizers.remove(CLEANUP)
        done = {**item.obj, "metadata": {**meta, "finalizers": finalizers}}
        if finalizers:
            await self._registry.replace(DEFINITIONS, item, done, PLAIN)
        else:
            await self._registry.remove(DEFINITIONS, item, PLAIN)

    async def _empty(self, resource: Resource) -> bool:
        """Ask for the deletion of every object; whether none is left."""
        items = self._registry.kind(resource).items
        for key in [key for key, item in items.items() if not is_deleted(item.obj)]:
            namespace, _, name = key.rpartition("/")
            try:
                await delete(self._parts, _SERVER, Call("delete", resource, namespace, name))
            except NotFound:
                continue
        return not items

    def _later(self, name: str) -> None:
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self._mark, name)


def _shallow(obj: Obj) -> Obj:
    return {**obj, "metadata": dict(obj["metadata"])}


def _names(definition: Obj) -> Obj:
    names: Obj = (definition.get("status") or {}).get("acceptedNames") or {}
    return names


def _token(rows: tuple[Resource, ...], version: str) -> object:
    row = next((item for item in rows if item.version == version), None)
    custom = None if row is None else custom_of(row)
    return None if custom is None else custom.schema_token


def _reason(definition: Obj) -> str:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next(
        (condition["reason"] for condition in conditions if condition["type"] == "Terminating"), ""
    )
