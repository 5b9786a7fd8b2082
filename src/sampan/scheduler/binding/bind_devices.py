"""Devices for the claims of a pod that found its node: promised, written, or given back.

Job: what the allocation chose → API calls on the claims: finalizer, allocation, reservation.
Invariant: what was promised is written, or taken back; what was written counts until the API says
    otherwise.
Owner: Bindings.
"""

from sampan.api.objects import Obj, meta_of, name_of, uid_of
from sampan.api.resources import RESOURCE_CLAIMS
from sampan.client.contract import Client
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.devices.device_allocation import DeviceAllocation
from sampan.scheduler.devices.device_pools import reached_from
from sampan.scheduler.devices.devices import DeviceClaim
from sampan.scheduler.model.pod_info import PodInfo, PodShape

FINALIZER = "resource.kubernetes.io/delete-protection"


class DevicesNotBound(Exception):
    """The pod must look for a node again."""


@dataclass(slots=True)
class DevicePromise:
    allocations: dict[str, Obj]  # by claim: those that had none
    claims: tuple[str, ...]  # all of the pod's
    written: set[str]


class DeviceBinder:
    def __init__(self, client: Client, allocation: DeviceAllocation) -> None:
        self._client, self._allocation = client, allocation

    def promise(self, pod: PodShape, nodes: Snapshot, node: str) -> DevicePromise | None:
        if not pod.devices:
            return None
        chosen = {
            claim.key: made
            for claim, made in self._allocation.allocations(pod.devices, nodes, node)
        }
        for key, made in chosen.items():
            self._allocation.devices.promise(key, made)
        return DevicePromise(chosen, tuple(key for key, _ in pod.devices.claims), set())

    def take_back(self, made: DevicePromise) -> None:
        for key in made.allocations:
            if key not in made.written:
                self._allocation.devices.take_back(key)

    async def write(self, made: DevicePromise, pod: Obj) -> None:
        """Raises Conflict where somebody else changed a claim meanwhile."""
        for key in made.claims:
            claim = self._allocation.devices.claims.get(key)
            if claim is None:
                raise DevicesNotBound(f"the claim {key} is gone")
            if key in made.allocations:
                await self._allocate(claim, made.allocations[key], pod)
                made.written.add(key)
            elif uid_of(pod) not in claim.reserved:
                if claim.allocation is None:
                    raise DevicesNotBound(f"the claim {key} has lost its devices")
                order = [*claim.reserved, uid_of(pod)]  # who comes last is last
                added = {
                    "reservedFor": [_consumer(pod)],
                    "$setElementOrder/reservedFor": [{"uid": uid} for uid in order],
                }
                await self._patch(claim, {"uid": claim.uid}, added)
                made.written.add(key)

    async def release(self, made: DevicePromise, pod: Obj) -> None:
        """The pod does not come: it gives up what was reserved for it."""
        gone = {"reservedFor": [{"$patch": "delete", "uid": uid_of(pod)}]}
        for key in made.written:
            claim = self._allocation.devices.claims.get(key)
            if claim is not None:
                await self._patch(claim, {"uid": claim.uid}, gone)

    async def deallocate(self, claim: DeviceClaim) -> None:
        unchanged = {"uid": claim.uid, "resourceVersion": _version(claim.written)}
        await self._patch(claim, unchanged, {"allocation": None, "reservedFor": None})

    async def _allocate(self, claim: DeviceClaim, allocation: Obj, pod: Obj) -> None:
        version = _version(claim.written)
        if FINALIZER not in (meta_of(claim.written).get("finalizers") or ()):
            protected = {"uid": claim.uid, "resourceVersion": version, "finalizers": [FINALIZER]}
            namespace, _, name = claim.key.partition("/")
            stored = await self._client.patch(
                RESOURCE_CLAIMS, namespace, name, {"metadata": protected}
            )
            version = _version(stored)
        await self._patch(
            claim,
            {"uid": claim.uid, "resourceVersion": version},
            {"allocation": allocation, "reservedFor": [_consumer(pod)]},
        )

    async def _patch(self, claim: DeviceClaim, meta: Obj, status: Obj) -> None:
        namespace, _, name = claim.key.partition("/")
        patch = {"metadata": meta, "status": status}
        await self._client.patch(RESOURCE_CLAIMS, namespace, name, patch, subresource="status")


def elsewhere(row: PodInfo, nodes: Snapshot) -> DeviceClaim | None:
    """A claim of the pod that has devices which some node does not reach, and no other user."""
    for key, _ in row.shape.devices.claims:
        claim = nodes.devices.devices.claims.get(key)
        if claim is None or claim.allocation is None or set(claim.reserved) - {row.uid}:
            continue
        if not reached_from(claim.where, nodes).all():
            return claim
    return None


def _consumer(pod: Obj) -> Obj:
    return {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}


def _version(written: Obj) -> str:
    return str(meta_of(written).get("resourceVersion") or "")
