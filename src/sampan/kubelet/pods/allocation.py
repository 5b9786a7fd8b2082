"""Allocated resources: what each pod was admitted with, and which resizes wait.

Job: remember at which resources a pod was admitted, on disk; decide about a resize.
Invariant: a pod runs with what it was given, whatever its spec says by now; after a restart of the
    agent the checkpoint is the truth.
Invariant: the checkpoint is written before anything is started or changed because of it: who does
    so waits for `stored`.
Owner: SyncLoop gives and takes; PodSync reads, and says how far a resize got.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson

from sampan.api.objects import Obj, meta_of, spec_of, uid_of
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules import pod_resources
from sampan.api.rules.pods import (
    containers,
    init_containers,
    is_static,
    priority,
)
from sampan.api.rules.qos import GUARANTEED, qos_class
from sampan.kubelet.contracts.resize_state import WHOLE, InProgress, Pending
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.contracts.spec import RESIZABLE, pod_level_resources, resizable, resources_of
from sampan.kubelet.pods import fit
from sampan.kubelet.pods.allocation_checkpoint import AllocationCheckpoint

DEFERRED, INFEASIBLE = "Deferred", "Infeasible"

Resources = Mapping[str, Mapping[str, str]]  # requests and limits, by name
Allocation = Mapping[str, Resources]  # by container; by WHOLE, of the pod


def allocation_of(pod: Obj) -> dict[str, dict[str, dict[str, str]]]:
    found = {item["name"]: resources_of(item) for item in resizable(pod)}
    found[WHOLE] = pod_level_resources(pod)
    return {name: resources for name, resources in found.items() if resources}


def with_allocation(pod: Obj, given: Allocation | None) -> Obj:
    """The pod as it may run. The same object where it asks for nothing else."""
    if given is None or allocation_of(pod) == given:
        return pod
    spec = dict(spec_of(pod))
    if pod_level_resources(pod) != given.get(WHOLE, {}):
        spec = _with_allocation(spec, given.get(WHOLE, {}))
    names = {container["name"] for container in resizable(pod)}
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [
                _with_allocation(item, given.get(item["name"], {}))
                if item["name"] in names
                else item
                for item in spec[kind]
            ]
    return {**pod, "spec": spec}


def _with_allocation(container: Obj, given: Resources) -> Obj:
    """One that was given nothing has nothing, whatever it asks for by now."""
    resources = dict(container.get("resources") or {})
    for kind in ("requests", "limits"):
        others = {
            name: amount
            for name, amount in (resources.get(kind) or {}).items()
            if name not in RESIZABLE
        }
        resources[kind] = {**others, **given.get(kind, {})}
    return {**container, "resources": {key: value for key, value in resources.items() if value}}


def why_not(
    pod: Obj, others: Iterable[Obj], room: fit.NodeRoom, given: Allocation | None = None
) -> Pending | None:
    """May the pod have what its spec asks for by now? `others` hold what they were given, and so
    does it."""
    generation = int(meta_of(pod).get("generation") or 0)
    if room.pinned and qos_class(pod) == GUARANTEED:
        for name, policy in room.pinned.items():
            if _asks_of(allocation_of(pod), name) != _asks_of(given or {}, name):
                message = f"Resize is infeasible for Guaranteed Pods alongside {policy}"
                return Pending(INFEASIBLE, message, generation)
    if is_static(pod):
        message = "In-place resize of static-pods is not supported"
        return Pending(INFEASIBLE, message, generation)
    wanted = pod_resources.requests(pod)
    for name in RESIZABLE:
        capacity = value_of(room.allocatable.get(name, "0"))
        asked = wanted.get(name, ZERO)
        if capacity < asked:
            message = (
                f"Node didn't have enough capacity: {name}, "
                f"requested: {fit.countable_amount(name, asked)}, "
                f"capacity: {fit.countable_amount(name, capacity)}"
            )
            return Pending(INFEASIBLE, message, generation)
    refused = fit.lacking(pod, list(others), room)
    return Pending(DEFERRED, refused.message, generation) if refused is not None else None


def turn(pod: Obj, has: Obj) -> tuple[bool, int, bool]:
    """Which of the resizes that wait is looked at first, as upstream's sortPendingResizes: what
    grows nothing, the higher priority, Guaranteed pods; sorting leaves those that waited longer in
    front. `has`: the pod with what it was given."""
    wanted, held = pod_resources.requests(pod), pod_resources.requests(has)
    grows = any(wanted.get(name, ZERO) > held.get(name, ZERO) for name in RESIZABLE)
    return grows, -priority(pod), qos_class(pod) != GUARANTEED


def _asks_of(given: Allocation, name: str) -> dict[str, Quantity]:
    """By container."""
    return {
        container: value_of((resources.get("requests") or {}).get(name, "0"))
        for container, resources in given.items()
    }


def resize_text(pod: Obj, generation: int, error: str = "") -> str:
    """A resize in the words of its events."""
    changing = resizable(pod)
    listed: dict[str, object] = {
        kind: [{"name": match_["name"], "resources": _in_order(match_)} for match_ in found]
        for kind, found in (
            ("initContainers", [item for item in init_containers(pod) if item in changing]),
            ("containers", containers(pod)),
        )
        if found
    }
    listed["generation"] = generation
    if error:
        listed["error"] = error
    return json.dumps(listed, separators=(",", ":"))


def _in_order(container: Obj) -> Obj:
    """As Go writes them."""
    resources = container.get("resources") or {}
    return {key: resources[key] for key in ("limits", "requests", "claims") if resources.get(key)}


@lru_cache(maxsize=4096)
def _shared_allocation(text: bytes) -> Allocation:
    """Pods of one template were given the same; it is kept once."""
    found: Allocation = orjson.loads(text)
    return found


class Allocations:
    def __init__(self, path: str = "") -> None:
        """`path` of the checkpoint; empty: none is written."""
        self._checkpoint = AllocationCheckpoint(path)
        self._given: dict[str, Allocation] = self._checkpoint.read()
        # The spec that asks for just what was given: every new pod is weighed against all others,
        # and looking into each of them again would make that the most expensive step of an ADD.
        self._agreed: dict[str, Obj] = {}
        self.pending: dict[str, Pending] = {}
        self.in_progress: dict[str, InProgress] = {}

    def of(self, uid: str) -> Allocation | None:
        return self._given.get(uid)

    def applied(self, pod: Obj) -> Obj:
        """The pod as it may run."""
        uid = uid_of(pod)
        given = self._given.get(uid)
        if given is None or self._agreed.get(uid) is pod.get("spec"):
            return pod
        applied = with_allocation(pod, given)
        if applied is pod:
            self._agreed[uid] = spec_of(pod)
        return applied

    def applied_to(self, pods: Iterable[Obj]) -> list[Obj]:
        """Likewise, of all pods of a node: nearly all run with what they ask for."""
        agreed = self._agreed
        return [
            pod if agreed.get(pod["metadata"]["uid"]) is pod["spec"] else self.applied(pod)
            for pod in pods
        ]

    def give(self, pod: Obj) -> None:
        """The pod gets what its spec asks for."""
        uid, given = uid_of(pod), _shared_allocation(orjson.dumps(allocation_of(pod)))
        if given:
            self._agreed[uid] = spec_of(pod)
            if self._given.get(uid) != given:
                self._given[uid] = given
                self._checkpoint.put(uid, given, self._given)
        else:
            self._agreed.pop(uid, None)

    def forget(self, uid: str) -> None:
        self.pending.pop(uid, None)
        self.in_progress.pop(uid, None)
        self._agreed.pop(uid, None)
        if self._given.pop(uid, None) is not None:
            self._checkpoint.put(uid, None, self._given)

    def keep_only(self, uids: Iterable[str]) -> None:
        """Of pods that went while the agent was away nothing has to be remembered."""
        gone = self._given.keys() - set(uids)
        for uid in gone:
            del self._given[uid]
        if gone:
            self._checkpoint.replace(self._given)

    async def stored(self) -> None:
        """What was given until now is on the disk. Raises RuntimeFailure."""
        try:
            await self._checkpoint.stored()
        except OSError as error:
            raise RuntimeFailure(f"what the pod was given is not stored: {error}") from error
