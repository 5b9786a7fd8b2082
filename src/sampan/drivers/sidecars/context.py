"""What every sidecar of a driver is given.

Job: one frozen value: the driver, the API, what is known of it, how to tell.
"""

import base64
from collections.abc import Mapping

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.resources import SECRETS
from sampan.api.rules.volumes.in_tree_volumes import NotTranslated, translated_volume
from sampan.client.contract import Client
from sampan.client.events import EventRecorder, reference
from sampan.client.informer import Informer
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.tasks import Tasks
from sampan.drivers.sidecars.controller_calls import MULTI_WRITER, Capability, ControllerCalls
from sampan.drivers.sidecars.provisioning_rules import MODES, Segments, segments_of
from sampan.drivers.sidecars.work import Sync, Work


@dataclass(frozen=True, slots=True)
class Known:
    """Informers that they share."""

    claims: Informer
    volumes: Informer
    classes: Informer
    attribute_classes: Informer
    nodes: Informer
    csi_nodes: Informer


@dataclass(frozen=True, slots=True)
class SidecarContext:
    calls: ControllerCalls
    client: Client
    known: Known
    recorder: EventRecorder
    tasks: Tasks
    clock: Clock
    node_name: str  # beside which the driver runs; empty: one for all nodes
    ready: Flag  # all that is known is known by now
    creates_capacity: bool = True  # CSIStorageCapacity objects

    @property
    def driver(self) -> str:
        return self.calls.name

    def nodes(self) -> list[str]:
        """With the driver."""
        return sorted(
            name_of(item)
            for item in self.known.csi_nodes.cache.all()
            if any(entry.get("name") == self.driver for entry in spec_of(item).get("drivers") or ())
        )

    def segments(self, node: str) -> Segments:
        found = self.known.nodes.cache.get(node) or {}
        return segments_of(found, self.known.csi_nodes.cache.get(node) or {}, self.driver)

    def work(self, name: str, sync: Sync) -> Work:
        return Work(name, sync, self.tasks, self.ready)

    def tell(self, about: Obj, reason: str, message: str, *, warns: bool = False) -> None:
        self.recorder.record(reference(about), "Warning" if warns else "Normal", reason, message)

    async def secrets(self, name: tuple[str, str] | None) -> Mapping[str, str]:
        """Raises ApiError, GrpcFailure."""
        if name is None or not name[1]:
            return {}
        found = await self.client.get(SECRETS, *name)
        data = found.get("data") or {}
        try:
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        except UnicodeDecodeError as error:
            why = "grpc: error while marshaling: string field contains invalid UTF-8"
            raise GrpcFailure(why, code="INTERNAL") from error

    async def secrets_if_there(self, reference: Obj | None) -> Mapping[str, str]:
        """Of a volume that may outlive them."""
        if not reference:
            return {}
        try:
            return await self.secrets((reference.get("namespace", ""), reference.get("name", "")))
        except NotFound:
            return {}

    def capability(self, spec: Obj, fs_type: str, options: list[str]) -> Capability:
        """Of a claim's or a volume's spec."""
        column = 0 if MULTI_WRITER in self.calls.able else 1
        modes = [MODES[mode][column] for mode in spec.get("accessModes") or ["ReadWriteOnce"]]
        return Capability(modes, spec.get("volumeMode") == "Block", fs_type, options)

    def capability_of(self, volume: Obj) -> Capability:
        spec = spec_of(volume)
        options = list(spec.get("mountOptions") or ())
        return self.capability(spec, (spec.get("csi") or {}).get("fsType") or "", options)

    def own(self, volume: Obj | None) -> Obj | None:
        """As the CSI volume of this driver that it is, in-tree disks that it stands for among them;
        None: it is another one's."""
        if volume is None:
            return None
        try:
            volume = translated_volume(volume)
        except NotTranslated:
            return None
        ours = (spec_of(volume).get("csi") or {}).get("driver") == self.driver
        return volume if ours else None
