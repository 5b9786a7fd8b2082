"""Capacity: how much a driver has left, by class and place, for the scheduler.

Job: as external-provisioner: a CSIStorageCapacity for each StorageClass of the driver that waits
    for a pod, in the topology of this node; renewed when volumes come and go.
Invariant: nothing is asked while no such class is there.
Owner: Sidecars.
"""

import asyncio
import hashlib

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import Obj, labels_of, name_of, namespace_of, uid_of
from sampan.api.quantity import Format, from_value
from sampan.api.resources import CSI_STORAGE_CAPACITIES
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.drivers.sidecars import provisioning_rules as rules
from sampan.drivers.sidecars.context import SidecarContext
from sampan.drivers.sidecars.controller_calls import CAPACITY

log = get_logger(__name__)

NAMESPACE = "kube-system"
DRIVER_LABEL, MANAGED_LABEL = "csi.storage.k8s.io/drivername", "csi.storage.k8s.io/managed-by"
# As external-provisioner's poll; a change of a volume is looked at once it has settled.
POLL_SECONDS, SETTLE_SECONDS, RETRY_SECONDS = 60.0, 0.2, 5.0


class Capacity:
    def __init__(self, context: SidecarContext) -> None:
        self._context = context
        self._changed = asyncio.Event()
        known = context.known
        for informer in (known.classes, known.volumes, known.nodes, known.csi_nodes):
            informer.on_change(lambda _old, _new: self._changed.set())
        if CAPACITY in context.calls.able and context.creates_capacity:
            context.tasks.supervise("capacity", self._run)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            wait = POLL_SECONDS
            try:
                if not await self._renew():
                    wait = 10 * POLL_SECONDS
            except (ApiError, GrpcFailure) as error:
                log.info("GetCapacity failed, trying again", error=error)
                wait = RETRY_SECONDS
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
                await self._context.clock.sleep(SETTLE_SECONDS)
            except TimeoutError:
                pass

    async def _renew(self) -> bool:
        """Is there any class whose pods may go by it?"""
        wanted = {}
        for item in self._classes():
            for segments in self._places():
                made = await self._object(item, segments)
                wanted[name_of(made)] = made
        selector = f"{DRIVER_LABEL}={self._context.driver},{MANAGED_LABEL}={self._manager()}"
        listed = await self._context.client.list(
            CSI_STORAGE_CAPACITIES, NAMESPACE, label_selector=selector
        )
        known = {name_of(item): item for item in listed.items}
        for name, made in wanted.items():
            await self._write(made, known.get(name))
        for name, item in known.items():
            if name not in wanted:
                await self._forget(item)
        return bool(wanted)

    def _classes(self) -> list[Obj]:
        return [
            item
            for item in self._context.known.classes.cache.all()
            if item.get("provisioner") == self._context.driver
            and item.get("volumeBindingMode") == rules.WAITS
        ]

    def _places(self) -> list[rules.Segments]:
        """Each once."""
        own = self._context.node_name
        nodes = [own] if own else self._context.nodes()
        found = (self._context.segments(name) for name in nodes)
        return list({tuple(sorted(item.items())): item for item in found}.values())

    async def _object(self, storage_class: Obj, segments: rules.Segments) -> Obj:
        left, most = await self._context.calls.capacity(
            rules.parameters_of(storage_class), segments
        )
        told = f"{name_of(storage_class)} {sorted(segments.items())} {self._context.driver}"
        made: Obj = {
            "apiVersion": CSI_STORAGE_CAPACITIES.api_version,
            "kind": CSI_STORAGE_CAPACITIES.kind,
            "metadata": {
                "name": f"csisc-{hashlib.sha256(told.encode()).hexdigest()[:10]}",
                "namespace": NAMESPACE,
                "labels": {DRIVER_LABEL: self._context.driver, MANAGED_LABEL: self._manager()},
            },
            "storageClassName": name_of(storage_class),
            "nodeTopology": {"matchLabels": dict(segments)},
            "capacity": str(from_value(left, Format.BINARY_SI)),
        }
        if most:
            made["maximumVolumeSize"] = str(from_value(most, Format.BINARY_SI))
        return made

    def _manager(self) -> str:
        return f"sampan-{self._context.node_name}"[:63].rstrip("-")

    async def _write(self, made: Obj, known: Obj | None) -> None:
        client = self._context.client
        if known is None:
            try:
                await client.create(CSI_STORAGE_CAPACITIES, made, NAMESPACE)
            except AlreadyExists:
                return
            return
        amounts = ("capacity", "maximumVolumeSize")
        if all(known.get(name) == made.get(name) for name in amounts) and labels_of(known):
            return
        patch = {"metadata": {"uid": uid_of(known)}, **{name: made.get(name) for name in amounts}}
        await client.patch(
            CSI_STORAGE_CAPACITIES, namespace_of(known), name_of(known), patch, patch_type="merge"
        )

    async def _forget(self, item: Obj) -> None:
        try:
            await self._context.client.delete(
                CSI_STORAGE_CAPACITIES, namespace_of(item), name_of(item)
            )
        except NotFound:
            return
