"""The controller service of csi.sampan.dev: volumes are made, copied, grown, attached, removed.

Job: answer CSI's Controller service for the volumes of one node.
Invariant: each call can be repeated, and a repeated one answers as the first.
Owner: the driver's process.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from sampan.core.grpc.socket_server import Methods, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.lock_per_key import LockPerKey
from sampan.drivers.csi import contents
from sampan.drivers.csi.checks import (
    check_capabilities,
    check_mutable,
    fits,
    fs_type_of,
    invalid,
    kind_of,
    need,
    not_found,
    page,
    size_of,
)
from sampan.drivers.csi.records import Records, Volume, id_of
from sampan.drivers.csi.settings import TOPOLOGY_KEY, DriverSettings
from sampan.plugins.csi import CONTROLLER
from sampan.plugins.gen import sampan_csi_pb2 as csi

Message = Any
_RPC = csi.ControllerServiceCapability.RPC
_ABLE = (
    _RPC.CREATE_DELETE_VOLUME, _RPC.LIST_VOLUMES, _RPC.GET_CAPACITY, _RPC.CREATE_DELETE_SNAPSHOT,
    _RPC.LIST_SNAPSHOTS, _RPC.CLONE_VOLUME, _RPC.EXPAND_VOLUME, _RPC.SINGLE_NODE_MULTI_WRITER,
    _RPC.MODIFY_VOLUME, _RPC.GET_VOLUME, _RPC.VOLUME_CONDITION,
)  # fmt: skip
_ATTACHING = (_RPC.PUBLISH_UNPUBLISH_VOLUME, _RPC.LIST_VOLUMES_PUBLISHED_NODES)


class Controller:
    def __init__(self, settings: DriverSettings, records: Records, locks: LockPerKey) -> None:
        self._settings, self._records, self._locks = settings, records, locks

    def methods(self) -> Methods:
        handlers = {
            "ControllerGetCapabilities": self.capabilities,
            "CreateVolume": self.create,
            "DeleteVolume": self.delete,
            "ControllerPublishVolume": self.attach,
            "ControllerUnpublishVolume": self.detach,
            "ValidateVolumeCapabilities": self.validate,
            "ListVolumes": self.list,
            "ControllerGetVolume": self.get,
            "ControllerModifyVolume": self.modify,
            "GetCapacity": self.capacity,
            "ControllerExpandVolume": self.expand,
        }
        return {
            f"/{CONTROLLER}/{name}": Unary(getattr(csi, f"{name}Request"), handle)
            for name, handle in handlers.items()
        }

    async def capabilities(self, _request: Message) -> Message:
        able = (*_ABLE, *(_ATTACHING if self._settings.attaches else ()))
        return csi.ControllerGetCapabilitiesResponse(
            capabilities=[
                csi.ControllerServiceCapability(rpc=_RPC(type=capability)) for capability in able
            ]
        )

    async def create(self, request: Message) -> Message:
        need(name=request.name)
        is_block = check_capabilities(request.volume_capabilities)
        kind = kind_of(dict(request.parameters), is_block=is_block)
        check_mutable(request.mutable_parameters)
        self._check_topology(request.accessibility_requirements)
        async with self._locks.held(request.name):
            made = await asyncio.to_thread(self._create, request, kind, is_block)
        return csi.CreateVolumeResponse(volume=self._shown(made))

    def _create(self, request: Message, kind: str, is_block: bool) -> Volume:
        source = request.volume_content_source
        volume_id = id_of(request.name)
        known = self._records.volume(volume_id)
        if known is not None:
            self._check_same(known, request, kind)
            return known
        least = self._least_size(source)
        volume = Volume(
            volume_id, request.name, kind, size_of(request.capacity_range, least), is_block,
            fs_type_of(request.volume_capabilities),
            from_snapshot=source.snapshot.snapshot_id, from_volume=source.volume.volume_id,
            mutable=dict(request.mutable_parameters),
        )  # fmt: skip
        if volume.size_bytes > self._free():
            what = f"{volume.size_bytes} bytes are more than this node has left"
            raise GrpcFailure(what, code="RESOURCE_EXHAUSTED")
        place = self._records.volume_place(volume_id)
        try:
            self._fill(volume)
        except (OSError, contents.ContentFailure) as error:
            self._records.remove(place)
            raise GrpcFailure(str(error), code="INTERNAL") from error
        self._records.keep_volume(volume)
        return volume

    def _fill(self, volume: Volume) -> None:
        place = self._records.volume_place(volume.id)
        if volume.from_snapshot:
            contents.copy(self._records.snapshot_place(volume.from_snapshot), place, volume.kind)
        elif volume.from_volume:
            contents.copy(self._records.volume_place(volume.from_volume), place, volume.kind)
        else:
            contents.make(place, volume)
        contents.resize(place, volume.kind, volume.size_bytes)

    def _check_same(self, known: Volume, request: Message, kind: str) -> None:
        source = request.volume_content_source
        same = (
            fits(known.size_bytes, request.capacity_range)
            and known.kind == kind
            and known.from_snapshot == source.snapshot.snapshot_id
            and known.from_volume == source.volume.volume_id
        )
        if not same:
            what = f"volume {request.name} is there already, and is another one"
            raise GrpcFailure(what, code="ALREADY_EXISTS")

    def _least_size(self, source: Message) -> int:
        """A copy is not smaller than what it is a copy of. Raises GrpcFailure."""
        match source.WhichOneof("type"):
            case "snapshot":
                snapshot = self._records.snapshot(source.snapshot.snapshot_id)
                if snapshot is None:
                    raise not_found(f"snapshot {source.snapshot.snapshot_id} is not here")
                return snapshot.size_bytes
            case "volume":
                volume = self._records.volume(source.volume.volume_id)
                if volume is None:
                    raise not_found(f"volume {source.volume.volume_id} is not here")
                return volume.size_bytes
        return 0

    def _check_topology(self, wanted: Message) -> None:
        allowed = [*wanted.requisite, *wanted.preferred]
        here = self._settings.node_id
        if allowed and all(item.segments.get(TOPOLOGY_KEY, here) != here for item in allowed):
            what = f"no volume can be made there: this is {TOPOLOGY_KEY}={here}"
            raise GrpcFailure(what, code="RESOURCE_EXHAUSTED")

    async def delete(self, request: Message) -> Message:
        need(volume_id=request.volume_id)
        async with self._locks.held(request.volume_id):
            volume = await asyncio.to_thread(self._records.volume, request.volume_id)
            if volume is not None:
                if volume.attached_to:
                    what = f"volume {volume.id} is attached to {volume.attached_to}"
                    raise GrpcFailure(what, code="FAILED_PRECONDITION")
                place = self._records.volume_place(volume.id)
                await asyncio.to_thread(_removed, self._records, place)
        return csi.DeleteVolumeResponse()

    async def attach(self, request: Message) -> Message:
        need(volume_id=request.volume_id, node_id=request.node_id)
        if not request.HasField("volume_capability"):
            raise invalid("volume_capability is required")
        check_capabilities([request.volume_capability])
        async with self._locks.held(request.volume_id):
            volume = await self._volume(request.volume_id)
            if request.node_id != self._settings.node_id:
                raise not_found(f"node {request.node_id} is not here")
            if volume.attached_to and volume.attached_read_only != request.readonly:
                what = f"volume {volume.id} is attached in another way"
                raise GrpcFailure(what, code="ALREADY_EXISTS")
            attached = replace(
                volume, attached_to=request.node_id, attached_read_only=request.readonly
            )
            await asyncio.to_thread(self._records.keep_volume, attached)
        return csi.ControllerPublishVolumeResponse(publish_context={"attachedTo": request.node_id})

    async def detach(self, request: Message) -> Message:
        need(volume_id=request.volume_id)
        async with self._locks.held(request.volume_id):
            volume = await asyncio.to_thread(self._records.volume, request.volume_id)
            if volume is not None and request.node_id in ("", volume.attached_to):
                left = replace(volume, attached_to="", attached_read_only=False)
                await asyncio.to_thread(self._records.keep_volume, left)
        return csi.ControllerUnpublishVolumeResponse()

    async def validate(self, request: Message) -> Message:
        need(volume_id=request.volume_id, volume_capabilities=request.volume_capabilities)
        volume = await self._volume(request.volume_id)
        if check_capabilities(request.volume_capabilities) != volume.block:
            what = "it is a block device" if volume.block else "it is no block device"
            return csi.ValidateVolumeCapabilitiesResponse(message=what)
        confirmed = csi.ValidateVolumeCapabilitiesResponse.Confirmed(
            volume_context=request.volume_context,
            volume_capabilities=request.volume_capabilities,
            parameters=request.parameters,
        )
        return csi.ValidateVolumeCapabilitiesResponse(confirmed=confirmed)

    async def list(self, request: Message) -> Message:
        volumes = await asyncio.to_thread(self._records.volumes)
        shown, token = page(volumes, request.max_entries, request.starting_token)
        entry, status = csi.ListVolumesResponse.Entry, csi.ListVolumesResponse.VolumeStatus
        return csi.ListVolumesResponse(
            entries=[
                entry(volume=self._shown(item), status=self._status(item, status)) for item in shown
            ],
            next_token=token,
        )

    async def get(self, request: Message) -> Message:
        need(volume_id=request.volume_id)
        volume = await self._volume(request.volume_id)
        status = self._status(volume, csi.ControllerGetVolumeResponse.VolumeStatus)
        return csi.ControllerGetVolumeResponse(volume=self._shown(volume), status=status)

    async def modify(self, request: Message) -> Message:
        need(volume_id=request.volume_id)
        check_mutable(request.mutable_parameters)
        async with self._locks.held(request.volume_id):
            volume = await self._volume(request.volume_id)
            mutable = {**volume.mutable, **dict(request.mutable_parameters)}
            await asyncio.to_thread(self._records.keep_volume, replace(volume, mutable=mutable))
        return csi.ControllerModifyVolumeResponse()

    async def capacity(self, request: Message) -> Message:
        here = request.accessible_topology.segments.get(TOPOLOGY_KEY, self._settings.node_id)
        free = await asyncio.to_thread(self._free) if here == self._settings.node_id else 0
        return csi.GetCapacityResponse(available_capacity=max(free, 0))

    async def expand(self, request: Message) -> Message:
        need(volume_id=request.volume_id)
        if not request.HasField("capacity_range"):
            raise invalid("capacity_range is required")
        async with self._locks.held(request.volume_id):
            volume = await self._volume(request.volume_id)
            size = size_of(request.capacity_range, volume.size_bytes)
            if size - volume.size_bytes > await asyncio.to_thread(self._free):
                what = f"{size} bytes are more than this node has left"
                raise GrpcFailure(what, code="OUT_OF_RANGE")
            place = self._records.volume_place(volume.id)
            await asyncio.to_thread(contents.resize, place, volume.kind, size)
            grown = replace(volume, size_bytes=size)
            await asyncio.to_thread(self._records.keep_volume, grown)
        return csi.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=True)

    async def _volume(self, volume_id: str) -> Volume:
        found = await asyncio.to_thread(self._records.volume, volume_id)
        if found is None:
            raise not_found(f"volume {volume_id} is not here")
        return found

    def _free(self) -> int:
        if self._settings.capacity_bytes:
            taken = sum(volume.size_bytes for volume in self._records.volumes())
            return self._settings.capacity_bytes - taken
        disk = os.statvfs(self._settings.root)
        return disk.f_bavail * disk.f_frsize

    def _shown(self, volume: Volume) -> Message:
        topology = csi.Topology(segments={TOPOLOGY_KEY: self._settings.node_id})
        shown = csi.Volume(
            volume_id=volume.id,
            capacity_bytes=volume.size_bytes,
            volume_context={"kind": volume.kind},
            accessible_topology=[topology],
        )
        if volume.from_snapshot:
            shown.content_source.snapshot.snapshot_id = volume.from_snapshot
        elif volume.from_volume:
            shown.content_source.volume.volume_id = volume.from_volume
        return shown

    def _status(self, volume: Volume, kind: Message) -> Message:
        there = contents.content_of(self._records.volume_place(volume.id), volume.kind).exists()
        condition = csi.VolumeCondition(
            abnormal=not there, message="" if there else "the content of the volume is gone"
        )
        nodes = [volume.attached_to] if volume.attached_to else []
        return kind(published_node_ids=nodes, volume_condition=condition)


def _removed(records: Records, place: Path) -> None:
    try:
        records.remove(place)
    except OSError as error:
        raise GrpcFailure(str(error), code="INTERNAL") from error
