"""A CSI driver's Controller service, as the sidecars ask it.

Job: what a call needs in our words → the driver's answer in our words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.drivers.sidecars.provisioning_rules import Made, Segments
from sampan.plugins.csi import CsiSocket, messages

Message = Any
_RPC = messages.ControllerServiceCapability.RPC
CREATE, PUBLISH, EXPAND, SNAPSHOT, MODIFY, CAPACITY, MULTI_WRITER = (
    _RPC.CREATE_DELETE_VOLUME, _RPC.PUBLISH_UNPUBLISH_VOLUME, _RPC.EXPAND_VOLUME,
    _RPC.CREATE_DELETE_SNAPSHOT, _RPC.MODIFY_VOLUME, _RPC.GET_CAPACITY,
    _RPC.SINGLE_NODE_MULTI_WRITER,
)  # fmt: skip
# As external-provisioner's default; what takes longer is asked for again.
CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Capability:
    """How a volume is to be used."""

    modes: Sequence[str]  # CSI's names
    block: bool = False
    fs_type: str = ""
    mount_options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A volume that is to be made."""

    name: str
    size_bytes: int
    capability: Capability
    parameters: Mapping[str, str]
    mutable: Mapping[str, str]
    secrets: Mapping[str, str]
    preferred: Sequence[Segments] = ()  # where; empty: anywhere
    requisite: Sequence[Segments] = ()
    from_snapshot: str = ""  # handles
    from_volume: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    handle: str
    size_bytes: int
    created_nanoseconds: int
    ready: bool


class ControllerCalls:
    def __init__(self, socket: CsiSocket) -> None:
        self._socket = socket
        self.name, self.able = "", frozenset[int]()
        self.has_topology = False

    async def begin(self) -> None:
        """Who is it, and what can it do? Raises GrpcFailure, as all of them."""
        info = await self._socket.identity("GetPluginInfo", messages.GetPluginInfoRequest())
        self.name = info.name
        found = await self._socket.identity(
            "GetPluginCapabilities", messages.GetPluginCapabilitiesRequest()
        )
        kinds = messages.PluginCapability.Service
        services = {item.service.type for item in found.capabilities}
        self.has_topology = kinds.VOLUME_ACCESSIBILITY_CONSTRAINTS in services
        if kinds.CONTROLLER_SERVICE in services:
            answer = await self._call("ControllerGetCapabilities")
            self.able = frozenset(item.rpc.type for item in answer.capabilities)

    async def create(self, wanted: Wanted) -> Made:
        request = messages.CreateVolumeRequest(
            name=wanted.name,
            capacity_range=messages.CapacityRange(required_bytes=wanted.size_bytes),
            volume_capabilities=capabilities(wanted.capability),
            parameters=wanted.parameters,
            mutable_parameters=wanted.mutable,
            secrets=wanted.secrets,
        )
        for segments in wanted.requisite:
            request.accessibility_requirements.requisite.add(segments=segments)
        for segments in wanted.preferred:
            request.accessibility_requirements.preferred.add(segments=segments)
        if wanted.from_snapshot:
            request.volume_content_source.snapshot.snapshot_id = wanted.from_snapshot
        if wanted.from_volume:
            request.volume_content_source.volume.volume_id = wanted.from_volume
        volume = (await self._call("CreateVolume", request)).volume
        return Made(
            volume.volume_id,
            volume.capacity_bytes,
            dict(volume.volume_context),
            [dict(item.segments) for item in volume.accessible_topology],
        )

    async def delete(self, handle: str, secrets: Mapping[str, str]) -> None:
        request = messages.DeleteVolumeRequest(volume_id=handle, secrets=secrets)
        await self._call("DeleteVolume", request)

    async def publish(
        self, handle: str, node: str, capability: Capability, *, read_only: bool,
        secrets: Mapping[str, str], attributes: Mapping[str, str],
    ) -> dict[str, str]:  # fmt: skip
        request = messages.ControllerPublishVolumeRequest(
            volume_id=handle,
            node_id=node,
            volume_capability=capabilities(capability)[0],
            readonly=read_only,
            secrets=secrets,
            volume_context=attributes,
        )
        return dict((await self._call("ControllerPublishVolume", request)).publish_context)

    async def unpublish(self, handle: str, node: str, secrets: Mapping[str, str]) -> None:
        request = messages.ControllerUnpublishVolumeRequest(
            volume_id=handle, node_id=node, secrets=secrets
        )
        await self._call("ControllerUnpublishVolume", request)

    async def expand(
        self, handle: str, size_bytes: int, capability: Capability, secrets: Mapping[str, str]
    ) -> tuple[int, bool]:
        """How large it is now, and whether the node has to do its part."""
        request = messages.ControllerExpandVolumeRequest(
            volume_id=handle,
            capacity_range=messages.CapacityRange(required_bytes=size_bytes),
            secrets=secrets,
            volume_capability=capabilities(capability)[0],
        )
        answer = await self._call("ControllerExpandVolume", request)
        return answer.capacity_bytes, answer.node_expansion_required

    async def modify(
        self, handle: str, mutable: Mapping[str, str], secrets: Mapping[str, str]
    ) -> None:
        request = messages.ControllerModifyVolumeRequest(
            volume_id=handle, mutable_parameters=mutable, secrets=secrets
        )
        await self._call("ControllerModifyVolume", request)

    async def snapshot(
        self, name: str, volume: str, parameters: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Snapshot:
        request = messages.CreateSnapshotRequest(
            name=name, source_volume_id=volume, parameters=parameters, secrets=secrets
        )
        found = (await self._call("CreateSnapshot", request)).snapshot
        return Snapshot(
            found.snapshot_id,
            found.size_bytes,
            found.creation_time.seconds * 10**9 + found.creation_time.nanos,
            found.ready_to_use,
        )

    async def delete_snapshot(self, handle: str, secrets: Mapping[str, str]) -> None:
        request = messages.DeleteSnapshotRequest(snapshot_id=handle, secrets=secrets)
        await self._call("DeleteSnapshot", request)

    async def capacity(self, parameters: Mapping[str, str], segments: Segments) -> tuple[int, int]:
        """What is left, and the largest volume that can be made; 0: not said."""
        request = messages.GetCapacityRequest(parameters=parameters)
        if segments:
            request.accessible_topology.segments.update(segments)
        answer = await self._call("GetCapacity", request)
        most = answer.maximum_volume_size.value if answer.HasField("maximum_volume_size") else 0
        return answer.available_capacity, most

    async def _call(self, method: str, request: Message = None) -> Message:
        asked = request if request is not None else getattr(messages, f"{method}Request")()
        return await self._socket.controller(method, asked, CALL_SECONDS)


def capabilities(wanted: Capability) -> list[Message]:
    found = []
    for mode in wanted.modes:
        one = messages.VolumeCapability()
        one.access_mode.mode = messages.VolumeCapability.AccessMode.Mode.Value(mode)
        if wanted.block:
            one.block.SetInParent()
        else:
            one.mount.fs_type = wanted.fs_type
            one.mount.mount_flags.extend(wanted.mount_options)
        found.append(one)
    return found
