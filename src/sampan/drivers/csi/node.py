"""The node service of csi.sampan.dev: volumes are staged, shown to pods, measured and grown.

Job: answer CSI's Node service on one node; inline volumes live as long as their pod has them.
Invariant: each call can be repeated; two calls about one volume never overlap: the second is told
    so (ABORTED).
Owner: the driver's process.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from sampan.core.grpc.socket_server import Methods, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.mounts import is_mounted
from sampan.drivers.csi import contents
from sampan.drivers.csi.checks import check_capabilities, invalid, kind_of, need, not_found
from sampan.drivers.csi.records import Records, Volume
from sampan.drivers.csi.settings import DIRECTORY, EPHEMERAL, SIZE, TOPOLOGY_KEY, DriverSettings
from sampan.plugins.csi import NODE
from sampan.plugins.gen import sampan_csi_pb2 as csi

Message = Any
_RPC = csi.NodeServiceCapability.RPC
_USAGE = csi.VolumeUsage


class Node:
    def __init__(self, settings: DriverSettings, records: Records) -> None:
        self._settings, self._records = settings, records
        self._at: set[str] = set()  # volumes that a call is about

    def methods(self) -> Methods:
        handlers = {
            "NodeGetInfo": self.info,
            "NodeGetCapabilities": self.capabilities,
            "NodeStageVolume": self.stage,
            "NodeUnstageVolume": self.unstage,
            "NodePublishVolume": self.publish,
            "NodeUnpublishVolume": self.unpublish,
            "NodeGetVolumeStats": self.stats,
            "NodeExpandVolume": self.expand,
        }
        return {
            f"/{NODE}/{name}": Unary(getattr(csi, f"{name}Request"), handle)
            for name, handle in handlers.items()
        }

    async def info(self, _request: Message) -> Message:
        return csi.NodeGetInfoResponse(
            node_id=self._settings.node_id,
            max_volumes_per_node=self._settings.most_volumes,
            accessible_topology=csi.Topology(segments={TOPOLOGY_KEY: self._settings.node_id}),
        )

    async def capabilities(self, _request: Message) -> Message:
        able = [_RPC.GET_VOLUME_STATS, _RPC.EXPAND_VOLUME, _RPC.VOLUME_CONDITION,
                _RPC.SINGLE_NODE_MULTI_WRITER]  # fmt: skip
        able += [_RPC.STAGE_UNSTAGE_VOLUME] if self._settings.stages else []
        able += [_RPC.VOLUME_MOUNT_GROUP] if self._settings.gives_group else []
        return csi.NodeGetCapabilitiesResponse(
            capabilities=[csi.NodeServiceCapability(rpc=_RPC(type=item)) for item in able]
        )

    async def stage(self, request: Message) -> Message:
        need(volume_id=request.volume_id, staging_target_path=request.staging_target_path)
        is_block = _wants_block(request)
        async with self._alone(request.volume_id):
            volume = await self._volume(request.volume_id)
            _check_use(volume, is_block)
            options = list(request.volume_capability.mount.mount_flags)
            place = self._records.volume_place(volume.id)
            staging = request.staging_target_path
            await _done(partial(contents.stage, place, volume, staging, options))
            await _done(partial(_give, request, staging))
        return csi.NodeStageVolumeResponse()

    async def unstage(self, request: Message) -> Message:
        need(volume_id=request.volume_id, staging_target_path=request.staging_target_path)
        async with self._alone(request.volume_id):
            volume = await asyncio.to_thread(self._records.volume, request.volume_id)
            place = self._records.volume_place(volume.id if volume else "-")
            await _done(partial(contents.unstage, place, volume, request.staging_target_path))
        return csi.NodeUnstageVolumeResponse()

    async def publish(self, request: Message) -> Message:
        need(volume_id=request.volume_id, target_path=request.target_path)
        is_block = _wants_block(request)
        async with self._alone(request.volume_id):
            if request.volume_context.get(EPHEMERAL) == "true":
                volume = await _done(partial(self._inline, request))
            else:
                volume = await self._volume(request.volume_id)
            _check_use(volume, is_block)
            staging = request.staging_target_path
            if not volume.ephemeral and self._settings.stages and not staging:
                raise invalid("staging_target_path is required")
            source = await _done(partial(self._source, volume, staging))
            await _done(
                partial(
                    contents.publish, source, request.target_path,
                    is_block=is_block, read_only=request.readonly,
                )
            )  # fmt: skip
            await _done(partial(_give, request, request.target_path))
        return csi.NodePublishVolumeResponse()

    def _inline(self, request: Message) -> Volume:
        """It comes with its pod."""
        known = self._records.volume(request.volume_id)
        if known is not None:
            return known
        given = dict(request.volume_context)
        volume = Volume(
            request.volume_id, request.volume_id, kind_of(given, is_block=False),
            _bytes(given.get(SIZE, "")), fs_type=request.volume_capability.mount.fs_type,
            ephemeral=True,
        )  # fmt: skip
        contents.make(self._records.volume_place(volume.id), volume)
        self._records.keep_volume(volume)
        return volume

    def _source(self, volume: Volume, staging: str) -> str:
        place = self._records.volume_place(volume.id)
        if volume.block:
            if not self._settings.stages:
                contents.stage(place, volume, staging, [])
            return contents.device_of(place, volume)
        if volume.ephemeral or not self._settings.stages:
            if volume.kind == DIRECTORY:
                return str(contents.content_of(place, volume.kind))
            own = str(place / "mounted")
            contents.stage(place, volume, own, [])
            return own
        if not is_mounted(staging):
            raise contents.ContentFailure(f"volume {volume.id} is not staged at {staging}")
        return staging

    async def unpublish(self, request: Message) -> Message:
        need(volume_id=request.volume_id, target_path=request.target_path)
        async with self._alone(request.volume_id):
            volume = await asyncio.to_thread(self._records.volume, request.volume_id)
            await _done(partial(contents.unpublish, request.target_path))
            if volume is not None and (volume.ephemeral or not self._settings.stages):
                await _done(partial(self._let_go, volume))
        return csi.NodeUnpublishVolumeResponse()

    def _let_go(self, volume: Volume) -> None:
        """Nobody unstages it."""
        place = self._records.volume_place(volume.id)
        if volume.kind != DIRECTORY:
            contents.unstage(place, volume, str(place / "mounted"))
        if volume.ephemeral:
            self._records.remove(place)

    async def stats(self, request: Message) -> Message:
        need(volume_id=request.volume_id, volume_path=request.volume_path)
        volume = await self._volume(request.volume_id)
        return await _done(partial(self._stats, volume, request.volume_path))

    def _stats(self, volume: Volume, path: str) -> Message:
        _check_there(path)
        there = contents.content_of(self._records.volume_place(volume.id), volume.kind).exists()
        usage = [_USAGE(unit=_USAGE.BYTES, total=volume.size_bytes)]
        if not volume.block:
            usage = _usage(os.statvfs(path))
        message = "" if there else "the content of the volume is gone"
        condition = csi.VolumeCondition(abnormal=not there, message=message)
        return csi.NodeGetVolumeStatsResponse(usage=usage, volume_condition=condition)

    async def expand(self, request: Message) -> Message:
        need(volume_id=request.volume_id, volume_path=request.volume_path)
        async with self._alone(request.volume_id):
            volume = await self._volume(request.volume_id)
            await _done(partial(_check_there, request.volume_path))
            place = self._records.volume_place(volume.id)
            mounted_at = request.staging_target_path or request.volume_path
            await _done(partial(contents.grow_file_system, place, volume, mounted_at))
        return csi.NodeExpandVolumeResponse(capacity_bytes=volume.size_bytes)

    async def _volume(self, volume_id: str) -> Volume:
        found = await asyncio.to_thread(self._records.volume, volume_id)
        if found is None:
            raise not_found(f"volume {volume_id} is not here")
        return found

    @asynccontextmanager
    async def _alone(self, volume_id: str) -> AsyncIterator[None]:
        if volume_id in self._at:
            what = f"an operation with volume {volume_id} is under way already"
            raise GrpcFailure(what, code="ABORTED")
        self._at.add(volume_id)
        try:
            yield
        finally:
            self._at.discard(volume_id)


def _wants_block(request: Message) -> bool:
    if not request.HasField("volume_capability"):
        raise invalid("volume_capability is required")
    return check_capabilities([request.volume_capability])


def _check_use(volume: Volume, is_block: bool) -> None:
    if volume.block != is_block:
        what = "a block device" if volume.block else "no block device"
        raise invalid(f"volume {volume.id} is {what}")


def _give(request: Message, path: str) -> None:
    """To the group that the caller leaves to us."""
    group = request.volume_capability.mount.volume_mount_group
    if group:
        os.chown(path, -1, int(group))
        os.chmod(path, 0o2775)


def _check_there(path: str) -> None:
    if not os.path.exists(path):
        raise not_found(f"nothing is at {path}")


def _usage(disk: os.statvfs_result) -> list[Message]:
    taken = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    inodes = disk.f_files - disk.f_ffree
    return [
        _USAGE(unit=_USAGE.BYTES, total=size, available=free, used=taken),
        _USAGE(unit=_USAGE.INODES, total=disk.f_files, available=disk.f_favail, used=inodes),
    ]


def _bytes(text: str) -> int:
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    number, unit = text[:-2], text[-2:]
    try:
        return int(number) * units[unit] if unit in units else int(text or 1 << 30)
    except ValueError as error:
        raise invalid(f"attribute {SIZE}: {text!r} is no size") from error


async def _done(work: Callable[[], Any]) -> Any:
    """In a thread, and to its end: who has gone away meanwhile asks again."""
    try:
        return await asyncio.shield(asyncio.to_thread(work))
    except contents.InUse as error:
        raise GrpcFailure(str(error), code="FAILED_PRECONDITION") from error
    except (OSError, contents.ContentFailure) as error:
        raise GrpcFailure(str(error), code="INTERNAL") from error
