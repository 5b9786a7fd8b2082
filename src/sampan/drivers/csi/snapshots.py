"""Snapshots of csi.sampan.dev: copies of a volume's content, as it was.

Job: the part of CSI's Controller service that is about snapshots.
Invariant: as with volumes, each call can be repeated.
Owner: the driver's process.
"""

import asyncio
from typing import Any

from sampan.core.clock import Clock
from sampan.core.grpc.socket_server import Methods, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.lock_per_key import LockPerKey
from sampan.drivers.csi import contents
from sampan.drivers.csi.checks import need, not_found, page
from sampan.drivers.csi.records import Records, Snapshot, id_of
from sampan.plugins.csi import CONTROLLER
from sampan.plugins.gen import sampan_csi_pb2 as csi

Message = Any


class Snapshots:
    def __init__(self, records: Records, locks: LockPerKey, clock: Clock) -> None:
        self._records, self._locks, self._clock = records, locks, clock

    def methods(self) -> Methods:
        handlers = {
            "CreateSnapshot": self.create,
            "DeleteSnapshot": self.delete,
            "ListSnapshots": self.list,
        }
        return {
            f"/{CONTROLLER}/{name}": Unary(getattr(csi, f"{name}Request"), handle)
            for name, handle in handlers.items()
        }

    async def create(self, request: Message) -> Message:
        need(name=request.name, source_volume_id=request.source_volume_id)
        snapshot_id = id_of(request.name)
        async with self._locks.held(("snapshot", snapshot_id)):
            known = await asyncio.to_thread(self._records.snapshot, snapshot_id)
            if known is not None and known.volume != request.source_volume_id:
                what = f"snapshot {request.name} is of another volume"
                raise GrpcFailure(what, code="ALREADY_EXISTS")
            if known is None:
                known = await self._take(snapshot_id, request)
        return csi.CreateSnapshotResponse(snapshot=_shown(known))

    async def _take(self, snapshot_id: str, request: Message) -> Snapshot:
        async with self._locks.held(request.source_volume_id):
            volume = await asyncio.to_thread(self._records.volume, request.source_volume_id)
            if volume is None:
                raise not_found(f"volume {request.source_volume_id} is not here")
            snapshot = Snapshot(
                snapshot_id, request.name, volume.id, volume.kind, volume.size_bytes,
                self._clock.now(), volume.fs_type, volume.block,
            )  # fmt: skip
            source = self._records.volume_place(volume.id)
            place = self._records.snapshot_place(snapshot_id)
            try:
                await asyncio.to_thread(contents.copy, source, place, volume.kind)
                await asyncio.to_thread(self._records.keep_snapshot, snapshot)
            except (OSError, contents.ContentFailure) as error:
                await asyncio.to_thread(self._records.remove, place)
                raise GrpcFailure(str(error), code="INTERNAL") from error
        return snapshot

    async def delete(self, request: Message) -> Message:
        need(snapshot_id=request.snapshot_id)
        async with self._locks.held(("snapshot", request.snapshot_id)):
            known = await asyncio.to_thread(self._records.snapshot, request.snapshot_id)
            if known is not None:
                place = self._records.snapshot_place(known.id)
                await asyncio.to_thread(self._records.remove, place)
        return csi.DeleteSnapshotResponse()

    async def list(self, request: Message) -> Message:
        found = [
            snapshot
            for snapshot in await asyncio.to_thread(self._records.snapshots)
            if request.snapshot_id in ("", snapshot.id)
            and request.source_volume_id in ("", snapshot.volume)
        ]
        shown, token = page(found, request.max_entries, request.starting_token)
        entry = csi.ListSnapshotsResponse.Entry
        return csi.ListSnapshotsResponse(
            entries=[entry(snapshot=_shown(item)) for item in shown], next_token=token
        )


def _shown(snapshot: Snapshot) -> Message:
    shown = csi.Snapshot(
        snapshot_id=snapshot.id,
        source_volume_id=snapshot.volume,
        size_bytes=snapshot.size_bytes,
        ready_to_use=True,
    )
    shown.creation_time.FromNanoseconds(int(snapshot.made_at * 1e9))
    return shown
