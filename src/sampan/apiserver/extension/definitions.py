"""CustomResourceDefinitions: names accepted, kinds served.

Job: follow the definitions, keep the kinds that they define, write their status; those that are
    deleted are crd_finalizer's.
Invariant: a definition is served from the moment that its status says Established, and no longer
    than it is there.
Owner: one task; the kinds change in the very step in which the watch cache has the definition.
"""

from collections.abc import Callable, Iterable

from sampan.api.calls import Item
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, is_deleted, name_of
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from sampan.api.resources import Resource
from sampan.api.rules.conditions import is_true
from sampan.apiserver.extension.accepted_names import wanted_status
from sampan.apiserver.extension.crd_finalizer import (
    RETRY,
    CrdFinalizer,
    says_the_same,
    write_status,
)
from sampan.apiserver.extension.definition_rows import rows_of
from sampan.apiserver.extension.retired_kinds import RetiredKinds
from sampan.apiserver.registry.generic import Stale
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)


class Definitions:
    def __init__(self, scope: RequestScope) -> None:
        self._scope = scope
        self._registry = registry = scope.registry
        self._kinds, self._published = registry.kinds, scope.schema
        self._clock = scope.clock
        self._queue: WorkQueue[str] = WorkQueue(RETRY)
        self._tasks = Tasks("custom-resource-definitions")
        self._finalizer = CrdFinalizer(scope, self._tasks)
        self._retired = RetiredKinds(registry, self._clock)
        self._listeners: list[Callable[[], None]] = []
        follow(registry.kind(DEFINITIONS), self._changed, self._reloaded)

    def when_changed(self, listener: Callable[[], None]) -> None:
        """Called whenever the served kinds are others than before."""
        self._listeners.append(listener)

    async def start(self) -> None:
        self._reloaded()
        self._tasks.supervise("sync", self._run)
        self._tasks.supervise("retired kinds", self._retired.run)
        self._finalizer.start()

    async def stop(self) -> None:
        await self._tasks.stop()
        self._queue.close()
        self._finalizer.close()

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
        if before is None or not is_deleted(before.obj) or not says_the_same(before.obj, now.obj):
            self._mark(name)
        if before is None or _names(before.obj) != _names(now.obj):
            self._mark_group(now.obj)

    def _serve(self, name: str, rows: tuple[Resource, ...]) -> None:
        before = self._kinds.of_definition(name)
        changed = self._kinds.replace(name, rows)
        if rows:
            self._retired.defined(rows[0])
        elif before:
            self._retired.gone(before)
        tokens = _tokens(rows)
        if any(tokens.get(version) is not token for version, token in _tokens(before).items()):
            # Whoever watches must list again: what it has seen is not how it is shown now.
            self._registry.kind(before[0]).end_watchers()
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
        self._queue.add(name)

    # The task

    async def _run(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._sync(name)
                self._queue.forget(name)
            except (ApiError, Stale) as error:
                seconds = self._queue.retry(name)
                log.warning(
                    "custom resource definition not synced", name=name, error=error,
                    retry_seconds=seconds,
                )  # fmt: skip
            finally:
                self._queue.done(name)

    async def _sync(self, name: str) -> None:
        item = self._registry.kind(DEFINITIONS).items.get(name)
        if item is None:
            return
        if is_deleted(item.obj):
            self._finalizer.enqueue(name)
            return
        status = wanted_status(item.obj, self._registry.find_all(DEFINITIONS), self._clock.now())
        if status != item.obj.get("status"):
            await write_status(self._scope, name, status)


def _names(definition: Obj) -> Obj:
    names: Obj = (definition.get("status") or {}).get("acceptedNames") or {}
    return names


def _tokens(rows: Iterable[Resource]) -> dict[str, object]:
    """By version: who has the same one shows objects alike."""
    known = ((row.version, custom_of(row)) for row in rows)
    return {version: None if custom is None else custom.schema_token for version, custom in known}
