"""Attacher: VolumeAttachments become ControllerPublishVolume, and their end the contrary.

Job: as external-attacher: call the driver, write what it said into the attachment's status.
Invariant: a volume that may be attached keeps its attachment's finalizer.
Owner: Sidecars.
"""

import random

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    key_of,
    name_of,
    spec_of,
    time_text,
    uid_of,
)
from sampan.api.resources import PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.drivers.sidecars.context import SidecarContext
from sampan.drivers.sidecars.controller_calls import PUBLISH

NODE_ID = "csi.alpha.kubernetes.io/node-id"


class Attacher:
    def __init__(self, context: SidecarContext) -> None:
        self._context = context
        self._finalizer = f"external-attacher/{context.driver.replace('.', '-')}"
        self._attachments = Informer(
            context.client, Selection(VOLUME_ATTACHMENTS), clock=context.clock,
            rng=random.Random(),
        )  # fmt: skip
        self._work = context.work("attach", self._sync)
        self._work.follow(self._attachments)
        self._volumes = context.work("detached volumes", self._let_go)
        self._volumes.follow(context.known.volumes)
        self._volumes.follow(self._attachments, _volume_of)
        context.known.volumes.on_change(lambda _old, _new: self._look_at_all())
        context.tasks.supervise("attachments", self._attachments.run)

    def _look_at_all(self) -> None:
        """One may have waited for its volume."""
        for attachment in self._attachments.cache.all():
            if not (attachment.get("status") or {}).get("attached"):
                self._work.add(key_of(attachment))

    async def _sync(self, key: str) -> None:
        attachment = self._attachments.cache.get(key)
        if attachment is None or spec_of(attachment).get("attacher") != self._context.driver:
            return
        if is_deleted(attachment):
            await self._detach(attachment)
        elif not (attachment.get("status") or {}).get("attached"):
            await self._attach(attachment)

    async def _attach(self, attachment: Obj) -> None:
        volume = self._volume(attachment)
        if volume is None:
            return
        context: dict[str, str] = {}
        node = self._node_id(attachment)
        if PUBLISH in self._context.calls.able:
            if "metadata" in volume:
                await self._protect(volume)
            notes = {**annotations_of(attachment), NODE_ID: node}
            await self._patch(attachment, {
                "metadata": {"annotations": notes, "finalizers": self._finalizers(attachment)}
            })  # fmt: skip
            source = spec_of(volume)["csi"]
            secrets = await self._context.secrets_if_there(source.get("controllerPublishSecretRef"))
            try:
                context = await self._context.calls.publish(
                    source["volumeHandle"], node, self._context.capability_of(volume),
                    read_only=bool(source.get("readOnly")), secrets=secrets,
                    attributes=source.get("volumeAttributes") or {},
                )  # fmt: skip
            except GrpcFailure as failure:
                await self._tell(attachment, "attachError", failure)
                raise
        status = {"attached": True, "attachmentMetadata": context or None, "attachError": None}
        await self._patch(attachment, {"status": status}, "status")

    async def _detach(self, attachment: Obj) -> None:
        if self._finalizer not in (attachment["metadata"].get("finalizers") or ()):
            return
        volume = self._volume(attachment)
        if volume is not None and PUBLISH in self._context.calls.able:
            source = spec_of(volume)["csi"]
            node = annotations_of(attachment).get(NODE_ID) or self._node_id(attachment)
            secrets = await self._context.secrets_if_there(source.get("controllerPublishSecretRef"))
            try:
                await self._context.calls.unpublish(source["volumeHandle"], node, secrets)
            except GrpcFailure as failure:
                await self._tell(attachment, "detachError", failure)
                raise
        kept = [item for item in attachment["metadata"]["finalizers"] if item != self._finalizer]
        await self._patch(attachment, {"metadata": {"finalizers": kept or None}})

    async def _protect(self, volume: Obj) -> None:
        has = list(volume["metadata"].get("finalizers") or ())
        if self._finalizer not in has:
            patch = {"metadata": {"uid": uid_of(volume), "finalizers": [*has, self._finalizer]}}
            await self._context.client.patch(
                PERSISTENT_VOLUMES, "", name_of(volume), patch, patch_type="merge"
            )

    async def _let_go(self, name: str) -> None:
        """A volume goes when it is attached nowhere."""
        volume = self._context.known.volumes.cache.get(name)
        if volume is None or not is_deleted(volume):
            return
        has = list(volume["metadata"].get("finalizers") or ())
        if self._finalizer not in has or any(
            _volume_of(item) == name for item in self._attachments.cache.all()
        ):
            return
        kept = [item for item in has if item != self._finalizer]
        patch = {"metadata": {"uid": uid_of(volume), "finalizers": kept or None}}
        await self._context.client.patch(PERSISTENT_VOLUMES, "", name, patch, patch_type="merge")

    def _finalizers(self, attachment: Obj) -> list[str]:
        has = list(attachment["metadata"].get("finalizers") or ())
        return has if self._finalizer in has else [*has, self._finalizer]

    def _volume(self, attachment: Obj) -> Obj | None:
        inline = (spec_of(attachment).get("source") or {}).get("inlineVolumeSpec")
        if inline:
            return self._context.own({"spec": inline})
        return self._context.own(self._context.known.volumes.cache.get(_volume_of(attachment)))

    def _node_id(self, attachment: Obj) -> str:
        """As the driver calls it."""
        name = spec_of(attachment).get("nodeName") or ""
        found = self._context.known.csi_nodes.cache.get(name) or {}
        for item in spec_of(found).get("drivers") or ():
            if item.get("name") == self._context.driver:
                return str(item.get("nodeID"))
        return name

    async def _tell(self, attachment: Obj, field: str, failure: GrpcFailure) -> None:
        said = {"message": str(failure), "time": time_text(self._context.clock.now())}
        await self._patch(attachment, {"status": {field: said}}, "status")

    async def _patch(self, attachment: Obj, change: Obj, subresource: str = "") -> None:
        meta = {"uid": uid_of(attachment), **change.get("metadata", {})}
        await self._context.client.patch(
            VOLUME_ATTACHMENTS, "", name_of(attachment), {**change, "metadata": meta},
            patch_type="merge", subresource=subresource,
        )  # fmt: skip


def _volume_of(attachment: Obj) -> str:
    return (spec_of(attachment).get("source") or {}).get("persistentVolumeName") or ""
