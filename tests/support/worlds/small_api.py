"""A small API for tests of one part: objects in memory behind the Client contract.

Job: create, read, patch, delete, list and watch, with what the node agent and the scheduler rely
    on: status as a subresource, graceful deletion of pods, uid preconditions, field selectors on
    spec.nodeName, bindings that give a pod its node once.
    Whole clusters are tested with the real API server; this one is for outages and counting.
    Failures of single calls are FaultyClient's, around it.
Invariant: revisions grow by one per write; a watch gives each later change once, in order, and is
    Expired where changes that it has not given yet are no longer kept.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from sampan.api.errors import (
    ApiError,
    Expired,
    ServiceUnavailable,
    UnknownPath,
    already_exists,
    conflict,
    invalid,
    invalid_value,
    not_found,
)
from sampan.api.objects import Obj, copy_of, is_deleted, labels_of, meta_of, time_text
from sampan.api.patch.merge_patch import merge_patch as whole_merge_patch
from sampan.api.resources import NODES, PODS, RESOURCES, Resource
from sampan.api.rules.selectors import parse_label_selector
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
from sampan.core.clock import Clock
from tests.support.worlds.small_merge import merge_patch

Key = tuple[str, str, str]  # resource, namespace, name
EVERY_KIND = ""  # whose watches a bookmark reaches


class SmallApi:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[Key, Obj] = {}
        self._history: list[tuple[int, str, WatchEvent]] = []
        self._creations = 0
        self._compacted = 0
        self._news = asyncio.Event()
        self._watch_epoch = 0
        self.revision = 1
        self.down = False  # every call fails while it is
        self.conflicts = 0  # so many patches of pods fail, as if another writer were faster
        self.calls: list[str] = []
        self.bindings: list[tuple[str, str]] = []  # pods' names and their nodes', in order
        self.without: dict[str, ApiError] = {}  # kinds, by plural, that it refuses or does not have

    # What a test does.

    def objects(self, resource: Resource) -> list[Obj]:
        return [obj for key, obj in self._objects.items() if key[0] == resource.group_resource]

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        return self._objects.get((resource.group_resource, namespace, name))

    def pod_scheduled(self, name: str) -> Obj | None:
        """The condition of a pod in the namespace default, if it has it yet."""
        pod = self._object(PODS, "default", name)
        condition: Obj
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition["type"] == "PodScheduled":
                return condition
        return None

    async def node(self, name: str = "n", cpu: str = "4", **spec: object) -> Obj:
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
        node = {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}
        return await self.create(NODES, node)

    async def pod(
        self, name: str = "p", cpu: str = "", labels: dict[str, str] | None = None, **spec: object
    ) -> Obj:
        container: Obj = {"name": "c", "image": "web"}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        pod = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], **spec},
        }
        return await self.create(PODS, pod, "default")

    def put(self, resource: Resource, obj: Obj) -> Obj:
        """Create or replace it, as it is given."""
        meta = meta_of(obj)
        key = (resource.group_resource, meta.get("namespace", ""), meta["name"])
        kind = "MODIFIED" if key in self._objects else "ADDED"
        return self._write(kind, resource, key, copy_of(obj))

    def remove(self, resource: Resource, namespace: str, name: str) -> Obj:
        """For good, whatever grace it asks for."""
        gone = self._objects.pop((resource.group_resource, namespace, name))
        return self._tell("DELETED", resource.group_resource, copy_of(gone))

    def bookmark(self) -> None:
        """Something else was written: revisions move on, and every watch is told so."""
        self._tell("BOOKMARK", EVERY_KIND, {"metadata": {}})

    def go_down(self) -> None:
        self.down = True
        self.break_watches()

    def come_back(self) -> None:
        self.down = False

    def break_watches(self) -> None:
        self._watch_epoch += 1
        self._news.set()

    def compact(self) -> None:
        self._compacted = self.revision
        self._history.clear()

    # The contract.

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> Obj:
        self._note_call("get", resource)
        return self._object(resource, namespace, name)

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
        self._note_call("list", resource)
        items = {
            "/".join(key[1:]): obj
            for key, obj in self._objects.items()
            if key[0] == resource.group_resource
            and namespace in ("", key[1])
            and _matches(obj, field_selector, label_selector)
        }
        keys = sorted(key for key in items if key > page.continue_token)
        part = keys[: page.limit] if page.limit else keys
        rest = part[-1] if len(part) < len(keys) else ""
        return Listed([items[key] for key in part], self.revision, rest)

    async def resources(self, group: str, version: str) -> Sequence[Resource]:
        found = [row for row in RESOURCES if (row.group, row.version) == (group, version)]
        if not found:
            raise UnknownPath("the server could not find the requested resource")
        return found

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: int,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        self._note_call("watch", resource)
        epoch, at = self._watch_epoch, revision
        while epoch == self._watch_epoch:
            if at < self._compacted:
                raise Expired("too old resource version")
            for number, kind, event in [entry for entry in self._history if entry[0] > at]:
                at = number
                if kind == EVERY_KIND or (
                    kind == resource.group_resource
                    and namespace in ("", meta_of(event.object).get("namespace", ""))
                    and _matches(event.object, field_selector, label_selector)
                ):
                    yield event
            if at >= self.revision and epoch == self._watch_epoch:
                self._news.clear()
                await self._news.wait()

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        self._note_call(f"create {subresource}".strip(), resource)
        if subresource == "token":
            return self._token(obj)
        if subresource == "binding":
            return self._bind(obj, namespace, name)
        new = copy_of(obj)
        meta = new.setdefault("metadata", {})
        namespace = namespace or meta.get("namespace", "")
        if resource.namespaced:
            meta["namespace"] = namespace
        self._creations += 1
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self._creations:05}"
        key = (resource.group_resource, namespace, meta["name"])
        if key in self._objects:
            raise already_exists(resource.plural, resource.group, meta["name"])
        meta.setdefault("uid", f"00000000-0000-0000-0000-{self._creations:012d}")
        meta["creationTimestamp"] = time_text(self._clock.now())
        meta["generation"] = 1
        if resource is PODS:
            new.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
        return self._write("ADDED", resource, key, new)

    async def update(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        self._note_call("update", resource)
        meta = meta_of(obj)
        before = self._object(resource, meta.get("namespace", ""), meta["name"])
        key = (resource.group_resource, meta.get("namespace", ""), meta["name"])
        based_on = meta.get("resourceVersion")
        if based_on and based_on != meta_of(before)["resourceVersion"]:
            raise conflict(resource.plural, resource.group, meta["name"], "it was changed")
        after = copy_of(obj)
        if subresource != "status" and "status" in before:
            after["status"] = before["status"]
        return self._write("MODIFIED", resource, key, after)

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
        self._note_call(f"patch {subresource}".strip(), resource)
        assert isinstance(patch, dict), "only merge patches"
        before = self._object(resource, namespace, name)
        if self.conflicts and resource is PODS:
            self.conflicts -= 1
            raise conflict(resource.plural, resource.group, name, "the object has been modified")
        uid = meta_of(patch).get("uid")
        if uid and uid != meta_of(before).get("uid"):
            cause = invalid_value("metadata.uid", uid, "field is immutable")
            raise invalid(resource.kind, resource.group, name, [cause])
        # A merge patch says a list whole, a strategic one what is new of it.
        merged = whole_merge_patch if patch_type == "merge" else merge_patch
        after = merged(before, patch)
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
        self._note_call("delete", resource)
        before = self._object(resource, namespace, name)
        if preconditions.uid and preconditions.uid != meta_of(before).get("uid"):
            raise conflict(resource.plural, resource.group, name, "the uid is another one")
        key = (resource.group_resource, namespace, name)
        spec = before.get("spec") or {}
        grace = grace_seconds
        if grace is None:
            grace = int(spec.get("terminationGracePeriodSeconds", 30))
        if resource is not PODS or grace == 0 or not spec.get("nodeName"):
            return self.remove(resource, namespace, name)
        after = copy_of(before)
        meta = after["metadata"]
        known = meta.get("deletionGracePeriodSeconds")
        if not is_deleted(before) or (known is not None and grace < known):
            meta["deletionTimestamp"] = time_text(self._clock.now() + grace)
            meta["generation"] = int(meta.get("generation") or 0) + 1
            meta["deletionGracePeriodSeconds"] = grace
        return self._write("MODIFIED", resource, key, after)

    # How it works.

    def _bind(self, binding: Obj, namespace: str, name: str) -> Obj:
        """Whoever binds a pod has to say which one: the name alone may be another's by now."""
        pod = copy_of(self._object(PODS, namespace, name))
        if binding["metadata"].get("uid") != pod["metadata"]["uid"]:
            raise conflict("pods/binding", "", name, "the uid is another one")
        if pod["spec"].get("nodeName"):
            raise conflict("pods/binding", "", name, "it already has a node")
        pod["spec"]["nodeName"] = binding["target"]["name"]
        self.bindings.append((name, binding["target"]["name"]))
        return self._write("MODIFIED", PODS, (PODS.group_resource, namespace, name), pod)

    def _token(self, request: Obj) -> Obj:
        """Another one each time, good for as long as it was asked for."""
        self._creations += 1
        expires = self._clock.now() + request["spec"]["expirationSeconds"]
        status = {"token": f"token-{self._creations}", "expirationTimestamp": time_text(expires)}
        return {**request, "status": status}

    def _note_call(self, verb: str, resource: Resource) -> None:
        self.calls.append(f"{verb} {resource.plural}")
        if self.down:
            raise ServiceUnavailable("the API is down")
        if resource.plural in self.without:
            raise self.without[resource.plural]

    def _object(self, resource: Resource, namespace: str, name: str) -> Obj:
        obj = self.find(resource, namespace, name)
        if obj is None:
            raise not_found(resource.plural, resource.group, name)
        return obj

    def _write(self, kind: str, resource: Resource, key: Key, obj: Obj) -> Obj:
        self._objects[key] = obj
        return self._tell(kind, resource.group_resource, obj)

    def _tell(self, kind: str, group_resource: str, obj: Obj) -> Obj:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        self._history.append((self.revision, group_resource, WatchEvent(kind, obj)))
        self._news.set()
        return obj


def _matches(obj: Obj, field_selector: str, label_selector: str) -> bool:
    if label_selector and not parse_label_selector(label_selector).matches(labels_of(obj)):
        return False
    wanted = (term.partition("=")[::2] for term in field_selector.split(",") if term)
    return all(_field(obj, path) == value for path, value in wanted)


def _field(obj: Obj, path: str) -> object:
    field: object = obj
    for part in path.split("."):
        field = field.get(part, "") if isinstance(field, dict) else ""
    return field
