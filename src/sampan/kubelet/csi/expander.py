"""Volume expansion on the node: NodeExpandVolume of volumes that have grown.

Job: look at a mounted volume's PersistentVolume and claim, have the driver expand it, and say in
    the claim how that went.
Invariant: the claim says NodeResizeInProgress before the driver is asked, where the resizer keeps
    track of such steps.
Owner: CsiVolumes.
"""

from typing import TYPE_CHECKING

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, meta_of, name_of, namespace_of, spec_of, time_text
from sampan.api.quantity import Quantity, value_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.client.contract import Client
from sampan.client.events import reference
from sampan.core.clock import Clock
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.kubelet.contracts.events_hook import RecordEvent, nobody
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.csi_volume import CsiVolume
from sampan.kubelet.csi.expansion_rules import (
    Expansion,
    expansion_of,
    status_failed,
    status_finished,
    status_in_progress,
    storage_of,
)
from sampan.kubelet.csi.mounting import Mounting

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import DriverCalls

log = get_logger(__name__)

Key = tuple[str, str]


class Expander:
    def __init__(self, client: Client, mounting: Mounting, clock: Clock) -> None:
        self._client, self._mounting, self._clock = client, mounting, clock
        self._sizes: dict[Key, Quantity] = {}  # as far as this node has grown them
        self._not_in_use: set[Key] = set()  # drivers that cannot while it is mounted
        self.tell: RecordEvent = nobody

    def forget(self, volume: CsiVolume) -> None:
        """Nobody has it any more: the next mount looks anew."""
        self._sizes.pop(volume.key, None)
        self._not_in_use.discard(volume.key)

    async def look(self, pod: Obj, volume: CsiVolume, calls: "DriverCalls", place: str) -> None:
        """Let it grow where it has to. `place`: where the pod has it. Raises VolumeFailure."""
        if volume.claim is None or volume.key in self._not_in_use:
            return
        try:
            found = await self._client.get(PERSISTENT_VOLUMES, "", volume.name)
            claim = await self._client.get(PERSISTENT_VOLUME_CLAIMS, *volume.claim)
        except ApiError as error:
            raise VolumeFailure(f"mountVolume.NodeExpandVolume get PVC failed : {error}") from error
        known = self._sizes.setdefault(
            volume.key, storage_of((claim.get("status") or {}).get("capacity"))
        )
        expansion = expansion_of(found, claim, known)
        if expansion is None:
            return
        if volume.read_only:
            words = "MountVolume.NodeExpandVolume failed"
            text = f'{words} for volume "{volume.name}" requested read-only file system'
            self._tell_both(pod, claim, "Warning", "FileSystemResizeFailed", text)
            return
        await self._expand(pod, volume, claim, expansion, (calls, place))

    async def _expand(
        self,
        pod: Obj,
        volume: CsiVolume,
        claim: Obj,
        expansion: Expansion,
        where: "tuple[DriverCalls, str]",
    ) -> None:
        if expansion.recovers and not expansion.is_told:
            claim = await self._write(claim, status_in_progress(claim))
        try:
            if not await self._ask(volume, expansion, *where):
                return
        except GrpcFailure as failure:
            await self._failed(volume, claim, expansion, failure)
            return
        self._sizes[volume.key] = value_of(expansion.size)
        node = spec_of(pod).get("nodeName") or ""
        text = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.name}" {node}'
        self._tell_both(pod, claim, "Normal", "FileSystemResizeSuccessful", text)
        if not expansion.is_told:
            await self._write(claim, status_finished(claim, expansion.size))

    async def _ask(
        self, volume: CsiVolume, expansion: Expansion, calls: "DriverCalls", place: str
    ) -> bool:
        """False: the driver has nothing to do here. Raises GrpcFailure, VolumeFailure."""
        from sampan.kubelet.csi.driver_calls import EXPAND, STAGE, Given

        if not await calls.can(EXPAND):
            if expansion.recovers and not expansion.is_told:
                why = f"NodeExpand is not supported by the CSI driver {volume.driver}"
                raise VolumeFailure(why)
            self._sizes[volume.key] = value_of(expansion.size)
            return False
        try:
            secrets = await self._mounting.secrets(volume.expand_secret)
        except ApiError as error:
            assert volume.expand_secret is not None
            name = "/".join(volume.expand_secret)
            why = f"expander.NodeExpand failed to get NodeExpandSecretRef {name}: {error}"
            raise VolumeFailure(why) from error
        staging = self._mounting.staging(volume) if await calls.can(STAGE) else ""
        given = Given(secrets=secrets, mount_options=volume.mount_options)
        size = value_of(expansion.size).value()
        await calls.expand(volume, place, staging, size, given)
        return True

    async def _failed(
        self, volume: CsiVolume, claim: Obj, expansion: Expansion, failure: GrpcFailure
    ) -> None:
        from sampan.kubelet.csi.driver_calls import is_final, is_infeasible

        why = f"Expander.NodeExpand failed to expand the volume : {failure}"
        if is_infeasible(failure):
            why = f"Expander.NodeExpand failed to expand the volume {failure}"
        if is_final(failure) and expansion.recovers:
            infeasible = is_infeasible(failure) or expansion.user_changed_mind
            now = time_text(self._clock.now())
            await self._write(claim, status_failed(claim, why, now, infeasible=infeasible))
        if failure.code == "FAILED_PRECONDITION":
            self._not_in_use.add(volume.key)
            log.warning("volume grows when it is mounted next", volume=volume.name, why=failure)
            return
        raise VolumeFailure(why)

    async def _write(self, claim: Obj, status: Obj) -> Obj:
        """Raises VolumeFailure."""
        revision = meta_of(claim).get("resourceVersion")
        patch = {"metadata": {"resourceVersion": revision}, "status": status}
        try:
            return await self._client.patch(
                PERSISTENT_VOLUME_CLAIMS, namespace_of(claim), name_of(claim), patch,
                patch_type="merge", subresource="status",
            )  # fmt: skip
        except ApiError as error:
            raise VolumeFailure(
                f"mountVolume.NodeExpandVolume update pvc status failed: {error}"
            ) from error

    def _tell_both(self, pod: Obj, claim: Obj, kind: str, reason: str, text: str) -> None:
        self.tell(reference(pod), kind, reason, text)
        self.tell(reference(claim), kind, reason, text)
