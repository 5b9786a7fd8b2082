"""Snapshotter: VolumeSnapshots become snapshots of a CSI driver, and go with them.

Job: as snapshot-controller and csi-snapshotter: a VolumeSnapshotContent for each VolumeSnapshot,
    CreateSnapshot and DeleteSnapshot for it, what the driver says in both statuses.
Invariant: the driver's snapshot is gone before its content is, where the policy says Delete.
Owner: Sidecars.
"""

import random
from typing import Any

from sampan.api.errors import AlreadyExists, Conflict, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    key_of,
    name_of,
    namespace_of,
    spec_of,
    time_text,
    uid_of,
)
from sampan.api.quantity import Format, from_value
from sampan.api.resources import Resource
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.drivers.sidecars.context import SidecarContext
from sampan.drivers.sidecars.provisioning_rules import PREFIX
from sampan.drivers.sidecars.snapshot_kinds import CLASSES, CONTENTS, GROUP, SNAPSHOTS

_DOMAIN = "snapshot.storage.kubernetes.io"
BOUND, AS_SOURCE = (
    f"{_DOMAIN}/volumesnapshot-bound-protection",
    f"{_DOMAIN}/volumesnapshot-as-source-protection",
)
CONTENT_BOUND = f"{_DOMAIN}/volumesnapshotcontent-bound-protection"
DEFAULT_CLASS = f"{_DOMAIN}/is-default-class"
SECRET = f"{PREFIX}snapshotter-secret-"


class Snapshotter:
    def __init__(self, context: SidecarContext) -> None:
        self._context, self._client = context, context.client
        self._snapshots, self._contents, self._classes = (
            Informer(context.client, Selection(row), clock=context.clock, rng=random.Random())
            for row in (SNAPSHOTS, CONTENTS, CLASSES)
        )
        self._work = context.work("snapshots", self._sync)
        self._content_work = context.work("snapshot contents", self._sync_content)
        self._work.follow(self._snapshots)
        self._work.follow(self._contents, _snapshot_of)
        self._content_work.follow(self._contents)
        self._classes.on_change(lambda _old, _new: self._look_at_all())
        context.known.claims.on_change(self._claim_changed)
        for name, informer in (
            ("snapshots", self._snapshots), ("contents", self._contents),
            ("snapshot classes", self._classes),
        ):  # fmt: skip
            context.tasks.supervise(name, informer.run)

    def _look_at_all(self) -> None:
        for snapshot in self._snapshots.cache.all():
            self._work.add(key_of(snapshot))

    def _claim_changed(self, old: Obj | None, new: Obj | None) -> None:
        """What is to be copied may have its volume by now."""
        claim = new or old or {}
        for snapshot in self._snapshots.cache.all():
            named = spec_of(snapshot)["source"].get("persistentVolumeClaimName")
            if named == name_of(claim) and namespace_of(snapshot) == namespace_of(claim):
                self._work.add(key_of(snapshot))

    # VolumeSnapshots.

    async def _sync(self, key: str) -> None:
        snapshot = self._snapshots.cache.get(key)
        if snapshot is None:
            return
        content = self._content_of(snapshot)
        if is_deleted(snapshot):
            await self._end(snapshot, content)
        elif content is not None:
            await self._bind(snapshot, content)
        elif spec_of(snapshot)["source"].get("persistentVolumeClaimName"):
            await self._begin(snapshot)

    def _content_of(self, snapshot: Obj) -> Obj | None:
        content = self._contents.cache.get(_content_name(snapshot))
        if content is None or spec_of(content).get("driver") != self._context.driver:
            return None
        about = spec_of(content).get("volumeSnapshotRef") or {}
        mine = (about.get("namespace"), about.get("name")) == (
            namespace_of(snapshot), name_of(snapshot),
        )  # fmt: skip
        return content if mine and about.get("uid") in (None, "", uid_of(snapshot)) else None

    def _class_of(self, snapshot: Obj) -> Obj | None:
        name = spec_of(snapshot).get("volumeSnapshotClassName")
        found = [
            item
            for item in self._classes.cache.all()
            if item.get("driver") == self._context.driver
            and (
                name_of(item) == name if name else annotations_of(item).get(DEFAULT_CLASS) == "true"
            )
        ]
        return found[0] if found else None

    async def _begin(self, snapshot: Obj) -> None:
        """Its content, with which the driver is asked."""
        kind, source = self._class_of(snapshot), spec_of(snapshot)["source"]
        key = f"{namespace_of(snapshot)}/{source['persistentVolumeClaimName']}"
        claim = self._context.known.claims.cache.get(key)
        known = self._context.known.volumes.cache.get(spec_of(claim or {}).get("volumeName") or "")
        volume = self._context.own(known)
        if volume is None:
            return  # another driver's, or not yet: its claim wakes us
        if kind is None:
            await self._no_class(snapshot)
            return
        await self._protect(SNAPSHOTS, snapshot, BOUND, AS_SOURCE)
        content = {
            "apiVersion": CONTENTS.api_version,
            "kind": CONTENTS.kind,
            "metadata": {
                "name": _content_name(snapshot), "finalizers": [CONTENT_BOUND]
            },
            "spec": {
                "deletionPolicy": kind["deletionPolicy"],
                "driver": self._context.driver,
                "source": {"volumeHandle": spec_of(volume)["csi"]["volumeHandle"]},
                "sourceVolumeMode": spec_of(volume).get("volumeMode") or "Filesystem",
                "volumeSnapshotClassName": name_of(kind),
                "volumeSnapshotRef": {
                    "apiVersion": SNAPSHOTS.api_version, "kind": SNAPSHOTS.kind,
                    "namespace": namespace_of(snapshot), "name": name_of(snapshot),
                    "uid": uid_of(snapshot),
                },
            },
        }  # fmt: skip
        text = f"Waiting for a snapshot {key_of(snapshot)} to be created by the CSI driver."
        self._context.tell(snapshot, "CreatingSnapshot", text)
        try:
            await self._client.create(CONTENTS, content)
        except AlreadyExists:
            return

    async def _no_class(self, snapshot: Obj) -> None:
        """Another driver's is as good as none."""
        name = spec_of(snapshot).get("volumeSnapshotClassName")
        reason = "GetSnapshotClassFailed" if name else "SetDefaultSnapshotClassFailed"
        what = f'volumesnapshotclass.{GROUP} "{name}" not found'
        why = f"failed to get snapshot class with error {what}"
        if not name:
            what = "cannot find default snapshot class"
            why = f"failed to set default snapshot class with error {what}"
        if ((snapshot.get("status") or {}).get("error") or {}).get("message") == why:
            return
        self._context.tell(snapshot, reason, why, warns=True)
        error = {"message": why, "time": time_text(self._context.clock.now())}
        failed = {"error": error, "readyToUse": False}
        await self._patch(SNAPSHOTS, snapshot, {"status": failed}, "status")

    async def _bind(self, snapshot: Obj, content: Obj) -> None:
        """What the content says is the snapshot's."""
        await self._protect(SNAPSHOTS, snapshot, BOUND, AS_SOURCE)
        if not spec_of(content)["volumeSnapshotRef"].get("uid"):
            about = {"volumeSnapshotRef": {"uid": uid_of(snapshot)}}
            await self._patch(CONTENTS, content, {"spec": about})
        found, status = content.get("status") or {}, snapshot.get("status") or {}
        wanted: dict[str, Any] = {
            "boundVolumeSnapshotContentName": name_of(content),
            "readyToUse": bool(found.get("readyToUse")),
        }
        if found.get("creationTime"):
            wanted["creationTime"] = time_text(found["creationTime"] / 10**9)
        if found.get("restoreSize") is not None:
            wanted["restoreSize"] = str(from_value(found["restoreSize"], Format.BINARY_SI))
        if found.get("error"):
            wanted["error"] = found["error"]
        elif "error" in status:
            wanted["error"] = None
        if all(status.get(name) == value for name, value in wanted.items()):
            return
        await self._patch(SNAPSHOTS, snapshot, {"status": wanted}, "status")
        if wanted["readyToUse"] and not status.get("readyToUse"):
            key = key_of(snapshot)
            created = f"Snapshot {key} was successfully created by the CSI driver."
            self._context.tell(snapshot, "SnapshotCreated", created)
            self._context.tell(snapshot, "SnapshotReady", f"Snapshot {key} is ready to use.")

    async def _end(self, snapshot: Obj, content: Obj | None) -> None:
        if content is None:
            content = await self._unseen_content(snapshot)
        if content is not None and spec_of(content).get("driver") != self._context.driver:
            return
        if content is not None:
            if spec_of(content)["deletionPolicy"] == "Delete" and not is_deleted(content):
                await self._client.delete(CONTENTS, "", name_of(content))
            if spec_of(content)["deletionPolicy"] == "Delete":
                return  # its going wakes us
        await self._protect(SNAPSHOTS, snapshot, BOUND, AS_SOURCE, release=True)

    async def _unseen_content(self, snapshot: Obj) -> Obj | None:
        """Made just now, perhaps, or another driver's."""
        try:
            return await self._client.get(CONTENTS, "", _content_name(snapshot))
        except NotFound:
            return None

    # VolumeSnapshotContents.

    async def _sync_content(self, key: str) -> None:
        content = self._contents.cache.get(key)
        if content is None or spec_of(content).get("driver") != self._context.driver:
            return
        if is_deleted(content):
            await self._remove(content)
        elif not (content.get("status") or {}).get("readyToUse"):
            await self._make(content)

    async def _make(self, content: Obj) -> None:
        source, about = spec_of(content)["source"], spec_of(content)["volumeSnapshotRef"]
        await self._protect(CONTENTS, content, CONTENT_BOUND)
        if source.get("snapshotHandle"):
            status = {"snapshotHandle": source["snapshotHandle"], "readyToUse": True,
                      "restoreSize": 0}  # fmt: skip
            await self._patch(CONTENTS, content, {"status": status}, "status")
            return
        kind = self._classes.cache.get(spec_of(content).get("volumeSnapshotClassName") or "") or {}
        parameters = {
            name: value
            for name, value in (kind.get("parameters") or {}).items()
            if not name.startswith(PREFIX)
        }
        secrets = await self._context.secrets(_secret_of(kind))
        name = f"snapshot-{about.get('uid') or uid_of(content)}"
        try:
            made = await self._context.calls.snapshot(
                name, source["volumeHandle"], parameters, secrets
            )
        except GrpcFailure as failure:
            why = f"Failed to check and update snapshot content: failed to take snapshot of the " \
                  f"volume {source['volumeHandle']}: \"{failure}\""  # fmt: skip
            error = {"message": why, "time": time_text(self._context.clock.now())}
            failed = {"error": error, "readyToUse": False}
            await self._patch(CONTENTS, content, {"status": failed}, "status")
            raise
        done = {
            "snapshotHandle": made.handle, "creationTime": made.created_nanoseconds,
            "readyToUse": made.ready, "restoreSize": made.size_bytes, "error": None,
        }  # fmt: skip
        await self._patch(CONTENTS, content, {"status": done}, "status")
        if not made.ready:
            raise GrpcFailure("the snapshot is not ready to use yet", code="UNAVAILABLE")

    async def _remove(self, content: Obj) -> None:
        handle = (content.get("status") or {}).get("snapshotHandle")
        if spec_of(content)["deletionPolicy"] == "Delete" and handle:
            name = spec_of(content).get("volumeSnapshotClassName") or ""
            kind = self._classes.cache.get(name) or {}
            secrets = await self._context.secrets(_secret_of(kind))
            await self._context.calls.delete_snapshot(handle, secrets)
        await self._protect(CONTENTS, content, CONTENT_BOUND, release=True)

    # Both.

    async def _protect(
        self, row: Resource, obj: Obj, *finalizers: str, release: bool = False
    ) -> None:
        has = list(obj["metadata"].get("finalizers") or ())
        wanted = [item for item in has if item not in finalizers]
        if not release:
            wanted = [*has, *(item for item in finalizers if item not in has)]
        if wanted != has:
            await self._patch(row, obj, {"metadata": {"finalizers": wanted or None}})

    async def _patch(self, row: Resource, obj: Obj, change: Obj, subresource: str = "") -> None:
        meta = {"uid": uid_of(obj), **change.get("metadata", {})}
        try:
            await self._client.patch(
                row, namespace_of(obj) if row.namespaced else "", name_of(obj),
                {**change, "metadata": meta}, patch_type="merge", subresource=subresource,
            )  # fmt: skip
        except (NotFound, Conflict):
            return  # another one by now: it wakes us itself


def _content_name(snapshot: Obj) -> str:
    named = spec_of(snapshot)["source"].get("volumeSnapshotContentName")
    return named or f"snapcontent-{uid_of(snapshot)}"


def _snapshot_of(content: Obj) -> str:
    about = spec_of(content).get("volumeSnapshotRef") or {}
    return f"{about.get('namespace')}/{about.get('name')}"


def _secret_of(kind: Obj) -> tuple[str, str] | None:
    given = kind.get("parameters") or {}
    space, name = given.get(f"{SECRET}namespace"), given.get(f"{SECRET}name")
    return (space, name) if space and name else None
