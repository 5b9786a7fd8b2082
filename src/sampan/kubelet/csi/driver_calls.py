"""CSI driver client: the node service of one driver, in our own values.

Job: the node service's methods, with the paths as the driver sees them; capabilities, asked for
    once; which failures mean that nothing was done.
Invariant: every call raises GrpcFailure, and nothing else.
Owner: CsiDrivers keeps one for each registered driver.
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure, code_name
from sampan.core.metrics import Metrics
from sampan.kubelet.csi.csi_volume import CsiVolume
from sampan.kubelet.csi.node_info import DriverNode
from sampan.kubelet.csi.volume_paths import seen_by_driver
from sampan.plugins.csi import CsiSocket, Message, messages

# As upstream's isFinalError: after these the driver may still be at it.
_UNCERTAIN = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"}
)
_INFEASIBLE = frozenset({"INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"})
_RPC = messages.NodeServiceCapability.RPC
_MODES = messages.VolumeCapability.AccessMode
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600)

STAGE, STATS, EXPAND, GROUP, MANY_WRITERS, CONDITION = (
    _RPC.STAGE_UNSTAGE_VOLUME, _RPC.GET_VOLUME_STATS, _RPC.EXPAND_VOLUME, _RPC.VOLUME_MOUNT_GROUP,
    _RPC.SINGLE_NODE_MULTI_WRITER, _RPC.VOLUME_CONDITION,
)  # fmt: skip


def is_final(failure: GrpcFailure) -> bool:
    """Nothing of it is under way any more."""
    return failure.code not in _UNCERTAIN


def is_infeasible(failure: GrpcFailure) -> bool:
    """It will not work with that size, however often it is tried."""
    return failure.code in _INFEASIBLE


@dataclass(frozen=True, slots=True)
class Given:
    """What goes with a call beside the volume itself."""

    secrets: Mapping[str, str] = field(default_factory=dict)
    publish_context: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    mount_options: tuple[str, ...] = ()
    group: int | None = None  # where the driver gives files to it


@dataclass(frozen=True, slots=True)
class Usage:
    available: int
    total: int
    used: int


@dataclass(frozen=True, slots=True)
class VolumeStats:
    bytes: Usage | None = None
    inodes: Usage | None = None
    abnormal: bool | None = None  # None: the driver does not say
    message: str = ""


@dataclass(frozen=True, slots=True)
class DriverPlace:
    """How one driver is reached, and how it sees the node."""

    name: str
    endpoint: str  # as the driver said it
    root: str  # the kubelet's


class DriverCalls:
    def __init__(
        self, place: DriverPlace, socket: CsiSocket, *, clock: Clock, metrics: Metrics
    ) -> None:
        self.name, self._place = place.name, place
        self._socket, self._clock = socket, clock
        self._able: frozenset[int] | None = None
        self._seconds = metrics.histogram(
            "csi_operations_seconds",
            "Container Storage Interface operation duration with gRPC error code status total",
            ("driver_name", "method_name", "grpc_status_code", "migrated"),
            buckets=_BUCKETS,
        )

    async def node_info(self) -> DriverNode:
        said = await self._call("NodeGetInfo", messages.NodeGetInfoRequest())
        return DriverNode(
            self.name,
            said.node_id,
            said.max_volumes_per_node,
            dict(said.accessible_topology.segments),
        )

    async def can(self, capability: int) -> bool:
        if self._able is None:
            said = await self._call("NodeGetCapabilities", messages.NodeGetCapabilitiesRequest())
            self._able = frozenset(item.rpc.type for item in said.capabilities)
        return capability in self._able

    async def stage(self, volume: CsiVolume, staging: str, given: Given) -> None:
        request = messages.NodeStageVolumeRequest(
            volume_id=volume.handle,
            publish_context=given.publish_context,
            staging_target_path=self._seen(staging),
            volume_capability=await self._capability(volume, given),
            secrets=given.secrets,
            volume_context=given.attributes,
        )
        await self._call("NodeStageVolume", request, migrated=volume.migrated)

    async def unstage(self, volume: CsiVolume, staging: str) -> None:
        request = messages.NodeUnstageVolumeRequest(
            volume_id=volume.handle, staging_target_path=self._seen(staging)
        )
        await self._call("NodeUnstageVolume", request, migrated=volume.migrated)

    async def publish(self, volume: CsiVolume, staging: str, target: str, given: Given) -> None:
        """`staging` empty: the driver does not stage."""
        request = messages.NodePublishVolumeRequest(
            volume_id=volume.handle,
            publish_context=given.publish_context,
            staging_target_path=self._seen(staging),
            target_path=self._seen(target),
            volume_capability=await self._capability(volume, given),
            readonly=volume.read_only,
            secrets=given.secrets,
            volume_context=given.attributes,
        )
        await self._call("NodePublishVolume", request, migrated=volume.migrated)

    async def unpublish(self, volume: CsiVolume, target: str) -> None:
        request = messages.NodeUnpublishVolumeRequest(
            volume_id=volume.handle, target_path=self._seen(target)
        )
        await self._call("NodeUnpublishVolume", request, migrated=volume.migrated)

    async def expand(
        self, volume: CsiVolume, path: str, staging: str, size_bytes: int, given: Given
    ) -> int:
        """How large it is then."""
        request = messages.NodeExpandVolumeRequest(
            volume_id=volume.handle,
            volume_path=self._seen(path),
            staging_target_path=self._seen(staging),
            capacity_range=messages.CapacityRange(required_bytes=size_bytes),
            volume_capability=await self._capability(volume, given),
            secrets=given.secrets,
        )
        answer = await self._call("NodeExpandVolume", request, migrated=volume.migrated)
        return int(answer.capacity_bytes)

    async def stats(self, volume: CsiVolume, path: str) -> VolumeStats | None:
        """None: it cannot tell."""
        if not await self.can(STATS):
            return None
        request = messages.NodeGetVolumeStatsRequest(
            volume_id=volume.handle, volume_path=self._seen(path)
        )
        answer = await self._call("NodeGetVolumeStats", request, migrated=volume.migrated)
        usage = {item.unit: Usage(item.available, item.total, item.used) for item in answer.usage}
        condition = answer.volume_condition
        return VolumeStats(
            usage.get(messages.VolumeUsage.BYTES),
            usage.get(messages.VolumeUsage.INODES),
            condition.abnormal if await self.can(CONDITION) else None,
            condition.message,
        )

    async def close(self) -> None:
        await self._socket.close()

    async def _call(self, method: str, request: Message, *, migrated: bool = False) -> Message:
        began, code = self._clock.monotonic(), "OK"
        try:
            return await self._socket.node(method, request)
        except GrpcFailure as failure:
            code = failure.code
            raise
        finally:
            took = self._clock.monotonic() - began
            path = f"/csi.v1.Node/{method}"
            is_migrated = "true" if migrated else "false"
            self._seconds.observe(took, self.name, path, code_name(code), is_migrated)

    async def _capability(self, volume: CsiVolume, given: Given) -> Message:
        modes = _SHARED_MODES if await self.can(MANY_WRITERS) else _PLAIN_MODES
        mode = messages.VolumeCapability.AccessMode(
            mode=modes.get(volume.access_mode, _MODES.UNKNOWN)
        )
        if volume.block:
            block = messages.VolumeCapability.BlockVolume()
            return messages.VolumeCapability(access_mode=mode, block=block)
        mount = messages.VolumeCapability.MountVolume(
            fs_type=volume.fs_type, mount_flags=given.mount_options
        )
        if given.group is not None:
            mount.volume_mount_group = str(given.group)
        return messages.VolumeCapability(access_mode=mode, mount=mount)

    def _seen(self, path: str) -> str:
        return seen_by_driver(path, self._place.root, self._place.endpoint)


_PLAIN_MODES = {
    "ReadWriteOnce": _MODES.SINGLE_NODE_WRITER,
    "ReadOnlyMany": _MODES.MULTI_NODE_READER_ONLY,
    "ReadWriteMany": _MODES.MULTI_NODE_MULTI_WRITER,
    "ReadWriteOncePod": _MODES.SINGLE_NODE_WRITER,
}
_SHARED_MODES = {
    **_PLAIN_MODES,
    "ReadWriteOnce": _MODES.SINGLE_NODE_MULTI_WRITER,
    "ReadWriteOncePod": _MODES.SINGLE_NODE_SINGLE_WRITER,
}
