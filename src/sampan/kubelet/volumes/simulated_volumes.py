"""The volumes of a simulated node: nothing is mounted, but what is missing is missed.

Job: a pod that refers to a config map, secret, key or trust bundle that is not there, or to a
    certificate that is not issued, waits for it, as on a real node; everything else is taken as
    given.
Owner: Kubelet, for a simulated node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sampan.api.objects import Obj, uid_of
from sampan.core.tasks import give_way
from sampan.kubelet.container_spec.environment import Surroundings
from sampan.kubelet.container_spec.generate import NodeFacts
from sampan.kubelet.contracts.runtime import Mount
from sampan.kubelet.contracts.volumes_hook import MountedVolume, Objects, VolumeFailure
from sampan.kubelet.volumes.payload import (
    API_DATA,
    CertificateSources,
    Sources,
    payload_of,
    payload_room,
)
from sampan.kubelet.volumes.plan import set_up_failed
from sampan.kubelet.volumes.projected_certificates import ProjectedCertificates
from sampan.kubelet.volumes.references import kind_of, volumes_of
from sampan.kubelet.volumes.tracked_objects import TrackedObjects

VOLUMES_PER_TURN = 64  # of the loop
MOUNTS_PER_TURN = 1000


class PretendedMounting(Protocol):
    """Who pretends that CSI drivers mount."""

    async def mount(self, pod: Obj) -> None:
        """What drivers of this cluster have of the pod's volumes. Raises VolumeFailure."""

    async def unmount(self, uid: str) -> None:
        """Raises VolumeFailure."""


class SimulatedVolumes:
    def __init__(
        self,
        *,
        objects: TrackedObjects,
        changed: Callable[[str], None],
        node: NodeFacts,
        certificates: ProjectedCertificates,
        csi: PretendedMounting | None = None,
    ) -> None:
        """`csi`: of a node that pretends to have such drivers."""
        self._objects, self._on_change, self._csi = objects, changed, csi
        self._certificates = certificates
        self._around = Surroundings(node.node_name, node.node_ips, allocatable=node.allocatable)

    async def objects(self, pod: Obj) -> Objects:
        return await self._objects.of(pod, self._on_change)

    async def check(self, pod: Obj, objects: Objects) -> None:
        await self._checked(pod, objects, None)

    async def _checked(
        self, pod: Obj, objects: Objects, certificates: CertificateSources | None
    ) -> None:
        room = payload_room()
        sources = Sources(pod, objects, self._around, lambda projection: "", room, certificates)
        for number, volume in enumerate(volumes_of(pod), 1):
            if not number % VOLUMES_PER_TURN:
                await give_way()
            if kind_of(volume) in API_DATA:
                try:
                    payload_of(volume, sources)
                except VolumeFailure as fault:
                    raise set_up_failed(volume, str(fault)) from fault

    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, MountedVolume]:
        await self._checked(pod, objects, await self._certificates.of(pod))
        if self._csi is not None:
            await self._csi.mount(pod)
        place = f"/simulated/{uid_of(pod)}/volumes"
        return {item["name"]: MountedVolume(f"{place}/{item['name']}") for item in volumes_of(pod)}

    async def resolve(self, pod: Obj, container: str, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        found = []
        for number, mount in enumerate(mounts, 1):
            if mount.sub_path:
                below = f"{mount.host_path}/{mount.sub_path}"
                mount = replace(mount, host_path=below, sub_path="")
            found.append(mount)
            if not number % MOUNTS_PER_TURN:
                await give_way()
        return tuple(found)

    async def read(self, volume: MountedVolume, path: str) -> str | None:
        return None

    async def refresh(self, pod: Obj) -> None:
        await self._certificates.of(pod)

    def next_refresh(self, uid: str) -> float | None:
        return self._certificates.next_due(uid)

    async def clean_up(self, uid: str) -> None:
        if self._csi is not None:
            await self._csi.unmount(uid)
        self._certificates.forget(uid)
        self._objects.release(uid)

    async def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """Nothing to do."""
