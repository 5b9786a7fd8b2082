"""A small API for tests of one part: objects in memory behind the Client contract.

Job: create, read, patch, delete, list and watch, with what the node agent relies on: status as a
    subresource, graceful deletion of pods, uid preconditions, field selectors on spec.nodeName.
    Whole clusters are tested with the real API server; this one is for outages and counting.
Invariant: revisions grow by one per write; a watch gives each later change once, in order.
"""

import asyncio
from collections.abc import AsyncIterator

from sampan.api.errors import (
    ApiError,
    Expired,
    ServiceUnavailable,
    already_exists,
    conflict,
    not_found,
)
from sampan.api.objects import Obj, copy_of, is_deleted, labels_of, meta_of, time_text
from sampan.api.resources import PODS, Resource
from sampan.api.rules.selectors import parse_label_selector
from sampan.client.contract import (
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
from sampan.core.clock import Clock

Key = tuple[str, str, str]  # resource, namespace, name


class SmallApi:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[Key, Obj] = {}
        self._history: list[tuple[int, str, WatchEvent]] = []
        self._revision = 1
        self._made = 0
        self._compacted = 0
        self._changed = asyncio.Event()
        self._watch_epoch = 0
        self.down = False  # every call fails while it is
        self.conflicts = 0  # so many patches of pods fail, as if another writer were faster
        self.calls: list[str] = []
        self.without: dict[str, ApiError] = {}  # kinds, by plural, that it refuses or does not have

    # What a test does.

    def objects(self, resource: Resource) -> list[Obj]:
        return [obj for key, obj in self._objects.items() if key[0] == resource.group_resource]

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        return self._objects.get((resource.group_resource, namespace, name))

    def go_down(self) -> None:
        self.down = True
        self.break_watches()

    def come_back(self) -> None:
        self.down = False

    def break_watches(self) -> None:
        self._watch_epoch += 1
        self._wake()

    def compact(self) -> None:
        self._compacted = self._revision
        self._history.clear()

    # The contract.

    async def get(
        self, resource: Resource, namespace: str, name: str, *, subresource: str = ""
    ) -> Obj:
        self._called("get", resource)
        return self._found(resource, namespace, name)

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
        self._called("list", resource)
        items = [
            obj
            for obj in self.objects(resource)
            if namespace in ("", meta_of(obj).get("namespace", ""))
            and _selected(obj, field_selector, label_selector)
        ]
        return Listed(items, self._revision)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        self._called("watch", resource)
        if revision < self._compacted:
            raise Expired("too old resource version")
        epoch, at = self._watch_epoch, revision
        while epoch == self._watch_epoch:
            for number, kind, event in self._history:
                if number > at:
                    at = number
                    if kind == resource.group_resource and _selected(
                        event.object, field_selector, label_selector
                    ):
                        yield event
            self._changed.clear()
            await self._changed.wait()

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        self._called(f"create {subresource}".strip(), resource)
        if subresource == "token":
            return self._token(obj)
        made = copy_of(obj)
        meta = made.setdefault("metadata", {})
        namespace = namespace or meta.get("namespace", "")
        if resource.namespaced:
            meta["namespace"] = namespace
        self._made += 1
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self._made:05}"
        key = (resource.group_resource, namespace, meta["name"])
        if key in self._objects:
            raise already_exists(resource.plural, resource.group, meta["name"])
        meta.setdefault("uid", f"00000000-0000-0000-0000-{self._made:012d}")
        meta["creationTimestamp"] = time_text(self._clock.now())
        meta["generation"] = 1
        if resource is PODS:
            made.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
        return self._write("ADDED", resource, key, made)

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        self._called("update", resource)
        meta = meta_of(obj)
        before = self._found(resource, meta.get("namespace", ""), meta["name"])
        key = (resource.group_resource, meta.get("namespace", ""), meta["name"])
        based_on = meta.get("resourceVersion")
        if based_on and based_on != meta_of(before)["resourceVersion"]:
            raise conflict(resource.plural, resource.group, meta["name"], "it was changed")
        made = copy_of(obj)
        if subresource != "status" and "status" in before:
            made["status"] = before["status"]
        return self._write("MODIFIED", resource, key, made)

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
        self._called(f"patch {subresource}".strip(), resource)
        assert isinstance(patch, dict), "only merge patches"
        before = self._found(resource, namespace, name)
        if self.conflicts and resource is PODS:
            self.conflicts -= 1
            raise conflict(resource.plural, resource.group, name, "the object has been modified")
        uid = meta_of(patch).get("uid")
        if uid and uid != meta_of(before).get("uid"):
            raise conflict(resource.plural, resource.group, name, "the uid is another one")
        after = _merged(before, patch)
        if after == before:
            return before
        return self._write("MODIFIED", resource, (resource.group_resource, namespace, name), after)

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
        self._called("delete", resource)
        before = self._found(resource, namespace, name)
        if preconditions.uid and preconditions.uid != meta_of(before).get("uid"):
            raise conflict(resource.plural, resource.group, name, "the uid is another one")
        key = (resource.group_resource, namespace, name)
        spec = before.get("spec") or {}
        grace = grace_seconds
        if grace is None:
            grace = int(spec.get("terminationGracePeriodSeconds", 30))
        if resource is not PODS or grace == 0 or not spec.get("nodeName"):
            del self._objects[key]
            return self._tell("DELETED", resource, copy_of(before))
        after = copy_of(before)
        meta = after["metadata"]
        known = meta.get("deletionGracePeriodSeconds")
        if not is_deleted(before) or (known is not None and grace < known):
            meta["deletionTimestamp"] = time_text(self._clock.now() + grace)
            meta["deletionGracePeriodSeconds"] = grace
        return self._write("MODIFIED", resource, key, after)

    # How it works.

    def _token(self, request: Obj) -> Obj:
        """Another one each time, good for as long as it was asked for."""
        self._made += 1
        expires = self._clock.now() + request["spec"]["expirationSeconds"]
        status = {"token": f"token-{self._made}", "expirationTimestamp": time_text(expires)}
        return {**request, "status": status}

    def _called(self, verb: str, resource: Resource) -> None:
        self.calls.append(f"{verb} {resource.plural}")
        if self.down:
            raise ServiceUnavailable("the API is down")
        if resource.plural in self.without:
            raise self.without[resource.plural]

    def _found(self, resource: Resource, namespace: str, name: str) -> Obj:
        found = self._objects.get((resource.group_resource, namespace, name))
        if found is None:
            raise not_found(resource.plural, resource.group, name)
        return found

    def _write(self, kind: str, resource: Resource, key: Key, obj: Obj) -> Obj:
        self._objects[key] = obj
        return self._tell(kind, resource, obj)

    def _tell(self, kind: str, resource: Resource, obj: Obj) -> Obj:
        self._revision += 1
        obj["metadata"]["resourceVersion"] = str(self._revision)
        event = WatchEvent(kind, obj)
        self._history.append((self._revision, resource.group_resource, event))
        self._wake()
        return obj

    def _wake(self) -> None:
        self._changed.set()


def _selected(obj: Obj, field_selector: str, label_selector: str) -> bool:
    if label_selector and not parse_label_selector(label_selector).matches(labels_of(obj)):
        return False
    if not field_selector:
        return True
    path, _, value = field_selector.partition("=")
    found: object = obj
    for part in path.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return found == value


def _merged(before: object, patch: object) -> Obj:
    """A strategic merge as far as statuses need it: lists of conditions merge by type."""
    result = _merge(before, patch)
    assert isinstance(result, dict)
    return result


def _merge(before: object, patch: object) -> object:
    if isinstance(patch, dict):
        merged = copy_of(before) if isinstance(before, dict) else {}
        for name, value in patch.items():
            if value is None:
                merged.pop(name, None)
            elif name == "conditions":
                merged[name] = _merge_conditions(merged.get(name) or [], value)
            else:
                merged[name] = _merge(merged.get(name), value)
        return merged
    if isinstance(patch, list):
        return [copy_of(one) for one in patch if one != {"$patch": "replace"}]
    return patch


def _merge_conditions(before: "list[Obj]", patch: "list[Obj]") -> "list[Obj]":
    merged = {one["type"]: one for one in before}
    for one in patch:
        if one.get("$patch") == "delete":
            merged.pop(one["type"], None)
            continue
        changed = _merge(merged.get(one["type"]), one)
        assert isinstance(changed, dict)
        merged[one["type"]] = changed
    return list(merged.values())
