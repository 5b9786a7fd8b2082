"""external-provisioner: volumes for claims of a CSI driver's classes, deletion of released ones.

Job: as external-provisioner: CreateVolume for a claim, its PersistentVolume; DeleteVolume for one
    that was released.
Invariant: a volume that the driver made is named by its claim's uid: asked again, it is the same.
Owner: Sidecars.
"""

from collections.abc import Mapping

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import Obj, annotations_of, key_of, name_of, namespace_of, spec_of, uid_of
from sampan.api.quantity import value_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.client.contract import Preconditions
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.drivers.sidecars import provisioning_rules as rules
from sampan.drivers.sidecars.context import SidecarContext
from sampan.drivers.sidecars.controller_calls import Wanted
from sampan.drivers.sidecars.snapshot_kinds import CONTENTS, GROUP, SNAPSHOTS

log = get_logger(__name__)


class _NotNow(ApiError):
    """Something that the claim needs is not there, or not yet."""

    code, reason = 409, "Conflict"


class Provisioner:
    def __init__(self, context: SidecarContext) -> None:
        self._context, self._known = context, context.known
        self._calls, self._client = context.calls, context.client
        self._claims = context.work("provision", self._provision)
        self._volumes = context.work("delete volumes", self._delete)
        self._claims.follow(self._known.claims)
        self._volumes.follow(self._known.volumes)
        for informer in (self._known.classes, self._known.csi_nodes):
            informer.on_change(lambda _old, _new: self._look_at_claims())

    def _look_at_claims(self) -> None:
        """A class or a node that came may be what a claim waited for."""
        for claim in self._known.claims.cache.all():
            if rules.wants_volume(claim, self._context.driver):
                self._claims.add(key_of(claim))

    async def _provision(self, key: str) -> None:
        claim = self._known.claims.cache.get(key)
        if claim is None or not rules.wants_volume(claim, self._context.driver):
            return
        name = spec_of(claim).get("storageClassName") or ""
        found = self._known.classes.cache.get(name)
        if found is None:
            return  # its coming wakes us
        lowest = min(self._context.nodes(), default="")
        here = self._context.node_name or annotations_of(claim).get(rules.SELECTED_NODE) or lowest
        if not rules.is_ready(claim, found, here, lowest):
            return
        self._context.tell(
            claim, "Provisioning",
            f'External provisioner is provisioning volume for claim "{key_of(claim)}"',
        )  # fmt: skip
        try:
            volume = await self._made(claim, found)
        except (GrpcFailure, ApiError) as failure:
            await self._failed(claim, found, failure)
            raise
        if volume is None:
            text = "Assuming an external populator will provision the volume"
            self._context.tell(claim, "Provisioning", text)
            return
        try:
            await self._client.create(PERSISTENT_VOLUMES, volume)
        except AlreadyExists:
            return
        text = f"Successfully provisioned volume {name_of(volume)}"
        self._context.tell(claim, "ProvisioningSucceeded", text)

    async def _made(self, claim: Obj, storage_class: Obj) -> Obj | None:
        """None where it is another one's to fill. Raises ApiError, GrpcFailure."""
        secrets = rules.secret_references(storage_class, claim)
        options = list(storage_class.get("mountOptions") or ())
        found = await self._source(claim)
        if found is None:
            return None
        snapshot, source = found
        preferred, requisite = self._topology(claim)
        wanted = Wanted(
            name=rules.volume_name(claim),
            size_bytes=value_of(spec_of(claim)["resources"]["requests"]["storage"]).value(),
            capability=self._context.capability(
                spec_of(claim), rules.fs_type_of(storage_class), options
            ),
            parameters=rules.parameters_of(storage_class),
            mutable=self._mutable(claim),
            secrets=await self._context.secrets(secrets.get("provisioner-secret")),
            preferred=preferred,
            requisite=requisite,
            from_snapshot=snapshot,
            from_volume=source,
        )
        made = await self._calls.create(wanted)
        identity = f"{self._context.driver}-{self._context.node_name}"
        return rules.volume_object(claim, storage_class, self._context.driver, made, identity)

    async def _failed(self, claim: Obj, storage_class: Obj, failure: Exception) -> None:
        name = name_of(storage_class)
        text = f'failed to provision volume with StorageClass "{name}": {failure}'
        self._context.tell(claim, "ProvisioningFailed", text, warns=True)
        full = isinstance(failure, GrpcFailure) and failure.code == "RESOURCE_EXHAUSTED"
        if full and rules.SELECTED_NODE in annotations_of(claim):
            # As upstream: the scheduler looks for another node.
            patch = {"metadata": {"uid": uid_of(claim), "annotations": {rules.SELECTED_NODE: None}}}
            await self._client.patch(
                PERSISTENT_VOLUME_CLAIMS, namespace_of(claim), name_of(claim), patch,
                patch_type="merge",
            )  # fmt: skip

    def _mutable(self, claim: Obj) -> Mapping[str, str]:
        """Raises _NotNow."""
        name = spec_of(claim).get("volumeAttributesClassName")
        if not name:
            return {}
        found = self._known.attribute_classes.cache.get(name)
        if found is None:
            raise _NotNow(f'volumeattributesclass.storage.k8s.io "{name}" not found')
        parameters: Mapping[str, str] = found.get("parameters") or {}
        return parameters

    def _topology(self, claim: Obj) -> tuple[list[rules.Segments], list[rules.Segments]]:
        """Preferred and requisite: the node that was chosen for it, else any with the driver."""
        if not self._calls.has_topology:
            return [], []
        chosen = annotations_of(claim).get(rules.SELECTED_NODE)
        if chosen:
            mine = [self._context.segments(chosen)]
            return mine, mine
        every = [self._context.segments(name) for name in self._context.nodes()]
        found = [segments for segments in every if segments]
        return found, found

    async def _source(self, claim: Obj) -> tuple[str, str] | None:
        """Handles of the snapshot, or of the volume, that it is a copy of; None where its kind is
        nothing that a driver knows. Raises ApiError."""
        spec, space = spec_of(claim), namespace_of(claim)
        source = spec.get("dataSourceRef") or spec.get("dataSource")
        if not source:
            return "", ""
        kind, name = source.get("kind"), source.get("name", "")
        if (source.get("apiGroup") or "") == GROUP and kind == "VolumeSnapshot":
            return await self._snapshot_handle(claim, space, name), ""
        if kind == "PersistentVolumeClaim":
            return "", self._volume_handle(space, name)
        return None

    async def _snapshot_handle(self, claim: Obj, space: str, name: str) -> str:
        snapshot = await self._client.get(SNAPSHOTS, space, name)
        status = snapshot.get("status") or {}
        if not status.get("readyToUse"):
            raise _NotNow(f"snapshot {name} is not Ready")
        asked = value_of(spec_of(claim)["resources"]["requests"]["storage"])
        least = value_of(status.get("restoreSize") or "0")
        if asked < least:
            raise _NotNow(
                f"requested volume size {asked.value()} is less than the size {least.value()} for "
                "the source snapshot"
            )
        content = await self._client.get(CONTENTS, "", status["boundVolumeSnapshotContentName"])
        return str((content.get("status") or {}).get("snapshotHandle") or "")

    def _volume_handle(self, space: str, name: str) -> str:
        source = self._known.claims.cache.get(f"{space}/{name}")
        known = self._known.volumes.cache.get(spec_of(source or {}).get("volumeName") or "")
        volume = self._context.own(known)
        if volume is None:
            raise _NotNow(f"the source claim {space}/{name} has no volume of this driver")
        return str(spec_of(volume)["csi"]["volumeHandle"])

    # The way back.

    async def _delete(self, key: str) -> None:
        volume = self._known.volumes.cache.get(key)
        if volume is None:
            return
        if rules.is_given_up(volume, self._context.driver):
            await self._let_go(volume)
            return
        if not rules.is_to_be_deleted(volume, self._context.driver) or not self._is_near(volume):
            return
        notes = annotations_of(volume)
        space, name = (notes.get(rules.DELETION_SECRET.format(part)) or ""
                       for part in ("namespace", "name"))  # fmt: skip
        secrets = await self._context.secrets_if_there({"namespace": space, "name": name})
        try:
            await self._calls.delete(spec_of(volume)["csi"]["volumeHandle"], secrets)
        except GrpcFailure as failure:
            self._context.tell(volume, "VolumeFailedDelete", str(failure), warns=True)
            raise
        try:
            await self._client.delete(
                PERSISTENT_VOLUMES, "", name_of(volume), preconditions=Preconditions(uid_of(volume))
            )
            await self._let_go(volume)
        except NotFound:
            return

    async def _let_go(self, volume: Obj) -> None:
        kept = [
            item for item in volume["metadata"].get("finalizers") or () if item != rules.FINALIZER
        ]
        patch = {"metadata": {"uid": uid_of(volume), "finalizers": kept or None}}
        await self._client.patch(PERSISTENT_VOLUMES, "", name_of(volume), patch, patch_type="merge")

    def _is_near(self, volume: Obj) -> bool:
        """Can this driver reach it? Of several nodes each has its own volumes."""
        identity = (spec_of(volume).get("csi") or {}).get("volumeAttributes") or {}
        made_by = identity.get("storage.kubernetes.io/csiProvisionerIdentity") or ""
        mine = f"{self._context.driver}-{self._context.node_name}"
        others = {f"{self._context.driver}-{node}" for node in self._context.nodes()} - {mine}
        return made_by not in others
