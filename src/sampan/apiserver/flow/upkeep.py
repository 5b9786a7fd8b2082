"""Upkeep of FlowSchemas and priority levels: mandatory and suggested objects, Dangling.

Job: what every cluster has of them is there and as it must be, and each schema says whether the
    level that it leads to is there. Written when one of them changes.
Invariant: comes to an end: what is written leaves nothing to write.
Owner: ApiServer.
"""

from collections.abc import Awaitable, Callable, Sequence

from sampan.api.objects import Obj, name_of, spec_of, time_text
from sampan.api.resources import Resource
from sampan.api.rules.conditions import find
from sampan.apiserver.flow.objects import (
    LEVELS,
    SCHEMAS,
    dangling,
    flow_objects,
    level_of,
    reconcile,
)
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag

Read = Callable[[], Sequence[Obj]]
Write = Callable[[Resource, Obj], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Repair:
    resource: Resource
    obj: Obj
    is_new: bool


def next_repair(schemas: Sequence[Obj], levels: Sequence[Obj], now: float) -> Repair | None:
    """One at a time: what is there may be another one after it. None: all is well."""
    there = {SCHEMAS: _by_name(schemas), LEVELS: _by_name(levels)}
    for resource, wanted in flow_objects(now):
        found = there[resource].get(name_of(wanted))
        if found is None:
            return Repair(resource, wanted, is_new=True)
        changed = reconcile(found, wanted)
        if changed is not None:
            return Repair(resource, changed, is_new=False)
    for schema in schemas:
        told = _with_dangling(schema, level_of(spec_of(schema)) in there[LEVELS], time_text(now))
        if told is not None:
            return Repair(SCHEMAS, told, is_new=False)
    return None


def _by_name(objects: Sequence[Obj]) -> dict[str, Obj]:
    return {name_of(obj): obj for obj in objects}


def _with_dangling(schema: Obj, exists: bool, now: str) -> Obj | None:
    """None: it says so already."""
    status = schema.get("status") or {}
    conditions: list[Obj] = status.get("conditions") or []
    said = find(conditions, "Dangling") or {}
    wanted = dangling(level_of(spec_of(schema)), exists, now)
    if said.get("status") == wanted["status"]:
        wanted["lastTransitionTime"] = said.get("lastTransitionTime") or now
    if said == wanted:
        return None
    others = [each for each in conditions if each is not said]
    return {**schema, "status": {**status, "conditions": [*others, wanted]}}


class FlowUpkeep:
    def __init__(self, schemas: Read, levels: Read, clock: Clock) -> None:
        self._schemas, self._levels, self._clock = schemas, levels, clock
        self._changed = Flag()
        self._changed.set()

    def changed(self) -> None:
        """A schema or a level is another one now."""
        self._changed.set()

    async def keep_going(self, create: Write, overwrite: Write) -> None:
        """Until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            repair = next_repair(self._schemas(), self._levels(), self._clock.now())
            if repair is not None:
                await (create if repair.is_new else overwrite)(repair.resource, repair.obj)
                self._changed.set()  # there may be more
