"""Resizer: claims that ask for more get it, and claims of another attributes class are changed.

Job: as external-resizer: ControllerExpandVolume and ControllerModifyVolume, with the steps of
    RecoverVolumeExpansionFailure in the claim's status.
Invariant: a volume is not grown beyond what its claim asks for, or asked for when that was begun.
Owner: Sidecars.
"""

from typing import Any

from sampan.api.objects import Obj, key_of, name_of, namespace_of, spec_of, time_text, uid_of
from sampan.api.quantity import Format, from_value, value_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.drivers.sidecars.context import SidecarContext
from sampan.drivers.sidecars.controller_calls import EXPAND, MODIFY

IN_PROGRESS, INFEASIBLE = "ControllerResizeInProgress", "ControllerResizeInfeasible"
NODE_PENDING = "NodeResizePending"
_NEVER = ("INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED")


class Resizer:
    def __init__(self, context: SidecarContext) -> None:
        self._context, self._known = context, context.known
        self._calls, self._client = context.calls, context.client
        self._work = context.work("resize", self._sync)
        self._work.follow(self._known.claims)
        self._known.attribute_classes.on_change(lambda _old, _new: self._look_at_all())

    def _look_at_all(self) -> None:
        for claim in self._known.claims.cache.all():
            self._work.add(key_of(claim))

    async def _sync(self, key: str) -> None:
        claim = self._known.claims.cache.get(key)
        if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
            return
        known = self._known.volumes.cache.get(spec_of(claim).get("volumeName") or "")
        volume = self._context.own(known)
        if volume is None:
            return
        if EXPAND in self._calls.able:
            await self._grow(claim, volume)
        if MODIFY in self._calls.able:
            await self._change(claim, volume)

    # Size.

    async def _grow(self, claim: Obj, volume: Obj) -> None:
        asked = value_of(spec_of(claim)["resources"]["requests"]["storage"]).value()
        has = value_of(spec_of(volume)["capacity"]["storage"]).value()
        status = claim.get("status") or {}
        state = (status.get("allocatedResourceStatuses") or {}).get("storage")
        begun = value_of((status.get("allocatedResources") or {}).get("storage") or "0").value()
        # In progress, and large enough: we ended between the volume and its claim.
        if asked <= has and state != IN_PROGRESS:
            return
        if state == INFEASIBLE and begun == asked:
            return
        claim = await self._note(claim, asked, IN_PROGRESS, "Resizing")
        self._context.tell(
            claim, "Resizing", f"External resizer is resizing volume {name_of(volume)}"
        )
        source = spec_of(volume)["csi"]
        secrets = await self._context.secrets_if_there(source.get("controllerExpandSecretRef"))
        try:
            size, on_node = await self._calls.expand(
                source["volumeHandle"], asked, self._context.capability_of(volume), secrets
            )
        except GrpcFailure as failure:
            await self._cannot(claim, volume, asked, failure)
            raise
        size = max(size, asked)
        patch = {
            "metadata": {"uid": uid_of(volume)},
            "spec": {"capacity": {"storage": _text(size)}},
        }
        await self._client.patch(PERSISTENT_VOLUMES, "", name_of(volume), patch, patch_type="merge")
        if on_node:
            await self._note(claim, asked, NODE_PENDING, "FileSystemResizePending",
                             "Waiting for user to (re-)start a pod to finish file system resize of "
                             "volume on node.")  # fmt: skip
            text = "Require file system resize of volume on node"
            self._context.tell(claim, "FileSystemResizeRequired", text)
        else:
            await self._write(claim, {
                "capacity": {"storage": _text(size)}, "conditions": _without(claim),
                "allocatedResources": {"storage": _text(asked)},
                "allocatedResourceStatuses": {"storage": None},
            })  # fmt: skip
            self._context.tell(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _cannot(self, claim: Obj, volume: Obj, asked: int, failure: GrpcFailure) -> None:
        why = f'resize volume "{name_of(volume)}" by resizer "{self._context.driver}" failed: ' \
              f"{failure}"  # fmt: skip
        self._context.tell(claim, "VolumeResizeFailed", why, warns=True)
        if failure.code in _NEVER:
            await self._note(claim, asked, INFEASIBLE, "ControllerResizeError", why)

    async def _note(
        self, claim: Obj, asked: int, state: str, condition: str, message: str = ""
    ) -> Obj:
        now = time_text(self._context.clock.now())
        made = {"type": condition, "status": "True", "lastProbeTime": None,
                "lastTransitionTime": now, "message": message}  # fmt: skip
        return await self._write(claim, {
            "allocatedResources": {"storage": _text(asked)},
            "allocatedResourceStatuses": {"storage": state},
            "conditions": [*_without(claim), made],
        })  # fmt: skip

    # Attributes.

    async def _change(self, claim: Obj, volume: Obj) -> None:
        wanted = spec_of(claim).get("volumeAttributesClassName") or ""
        status = claim.get("status") or {}
        if not wanted or wanted == (status.get("currentVolumeAttributesClassName") or ""):
            return
        if wanted == (spec_of(volume).get("volumeAttributesClassName") or ""):
            await self._write(claim, {
                "currentVolumeAttributesClassName": wanted, "modifyVolumeStatus": None,
            })  # fmt: skip
            return
        found = self._known.attribute_classes.cache.get(wanted)
        if found is None or found.get("driverName") != self._context.driver:
            await self._modifying(claim, wanted, "Pending")
            return
        claim = await self._modifying(claim, wanted, "InProgress")
        source = spec_of(volume)["csi"]
        secrets = await self._context.secrets_if_there(source.get("controllerExpandSecretRef"))
        try:
            await self._calls.modify(source["volumeHandle"], found.get("parameters") or {}, secrets)
        except GrpcFailure as failure:
            text = f"modify volume {name_of(volume)} failed: {failure}"
            self._context.tell(claim, "VolumeModifyFailed", text, warns=True)
            if failure.code in _NEVER:
                await self._modifying(claim, wanted, "Infeasible")
            raise
        patch = {"metadata": {"uid": uid_of(volume)},
                 "spec": {"volumeAttributesClassName": wanted}}  # fmt: skip
        await self._client.patch(PERSISTENT_VOLUMES, "", name_of(volume), patch, patch_type="merge")
        await self._write(claim, {
            "currentVolumeAttributesClassName": wanted, "modifyVolumeStatus": None,
        })  # fmt: skip
        text = f"External resizer modified volume {name_of(volume)} with vac {wanted} successfully"
        self._context.tell(claim, "VolumeModifySuccessful", text)

    async def _modifying(self, claim: Obj, wanted: str, state: str) -> Obj:
        target = {"targetVolumeAttributesClassName": wanted, "status": state}
        if (claim.get("status") or {}).get("modifyVolumeStatus") == target:
            return claim
        return await self._write(claim, {"modifyVolumeStatus": target})

    async def _write(self, claim: Obj, status: dict[str, Any]) -> Obj:
        """As it is then. Raises ApiError, a Conflict where it is not as it was read."""
        read = {"uid": uid_of(claim), "resourceVersion": claim["metadata"]["resourceVersion"]}
        patch = {"metadata": read, "status": status}
        return await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS, namespace_of(claim), name_of(claim), patch,
            patch_type="merge", subresource="status",
        )  # fmt: skip


def _without(claim: Obj) -> list[Obj]:
    """What others said of it."""
    ours = ("Resizing", "FileSystemResizePending", "ControllerResizeError")
    return [
        item
        for item in (claim.get("status") or {}).get("conditions") or ()
        if item.get("type") not in ours
    ]


def _text(size: int) -> str:
    return str(from_value(size, Format.BINARY_SI))
