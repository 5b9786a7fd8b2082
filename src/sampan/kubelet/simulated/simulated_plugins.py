"""The plugins of a simulated node: the kubelet's own parts, beside plugins that only pretend.

Job: build device manager, CSI volumes and admission as for a real node; plug in what the node
    pretends to have, and unplug it as the annotations of its Node say.
Invariant: a node that pretends nothing has none of it.
Owner: Kubelet.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.errors import ApiError, NotFound
from sampan.api.features import enabled
from sampan.api.objects import (
    Obj,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.volumes.in_tree_volumes import NotTranslated, translated_volume
from sampan.core.fast_dataclass import replace
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi.attachments import Attachments
from sampan.kubelet.csi.csi_drivers import CsiDrivers
from sampan.kubelet.csi.csi_node import CsiNodeWriter
from sampan.kubelet.csi.csi_volume import CsiVolume, of_inline_volume, of_persistent_volume
from sampan.kubelet.csi.csi_volumes import CsiParts, CsiVolumes
from sampan.kubelet.csi.driver_objects import DriverObjects
from sampan.kubelet.csi.expander import Expander
from sampan.kubelet.csi.mounting import Mounting
from sampan.kubelet.csi.volume_paths import CsiPaths
from sampan.kubelet.node_plugins import Loop, NodeHooks
from sampan.kubelet.plugin_manager.plugin_manager import PluginRefused
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from sampan.kubelet.simulated.device_plugin import PretendedDevices, PretendedPluginClient
from sampan.kubelet.simulated.pretence import PretendedDriver, Troubles, troubles_of
from sampan.kubelet.simulated.pretended_claims import PretendedClaims
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.scripted_failures import ScriptedFailures
from sampan.kubelet.volumes.references import claims_of, volumes_of
from sampan.kubelet.volumes.storage_operations import StorageOperations
from sampan.kubelet.volumes.tokens import Tokens

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import DriverCalls

log = get_logger(__name__)

VERSION = (1, 0, 0)  # of the drivers
RETRY_SECONDS = 1.0


class SimulatedPlugins:
    def __init__(self, context: NodeContext) -> None:
        self._context, self._pretence = context, context.settings.pretence
        self._tasks = Tasks("pretended plugins")
        self._hooks: NodeHooks | None = None
        self._changed, self._troubles = asyncio.Event(), Troubles()
        self._plugged: dict[str, PretendedPluginClient] = {}
        self._failures = ScriptedFailures()
        root = f"{context.settings.root_dir}/simulated/{context.settings.node_name}"
        self.devices = PretendedDevices(
            partial(self._why_not, "allocate_devices"), root, tasks=self._tasks,
            clock=context.clock, metrics=context.metrics,
        )  # fmt: skip
        topology = TopologySettings()
        self.resources = ResourceAdmission(
            self.devices, Managers(), topology,
            TopologyMetrics(context.metrics, context.clock, topology),
            claims=PretendedClaims(
                context.client, partial(self._why_not, "prepare_claims"), self._away
            ),
        )  # fmt: skip
        self.csi = self._build_csi(root)
        self.mounting = PretendedMounts(context, self.csi)

    def _build_csi(self, root: str) -> CsiVolumes:
        context = self._context
        client, node, clock = context.client, context.settings.node_name, context.clock
        self._writer = CsiNodeWriter(client, node, clock)
        self._drivers = CsiDrivers(self._writer, root, clock=clock, metrics=context.metrics)
        self._drivers.changed = self._driver_changed
        self._attachments = Attachments(client, node, self._node)
        paths, tokens = CsiPaths(root), Tokens(client, clock=clock, rng=context.rng)
        mounting = Mounting(client, paths, node, tokens)
        self._expander = Expander(client, mounting, clock)
        parts = CsiParts(
            self._drivers, DriverObjects(client, tasks=self._tasks, clock=clock),
            self._attachments, mounting, self._expander, paths,
            StorageOperations(context.metrics, clock),
        )  # fmt: skip
        return CsiVolumes(parts, tasks=self._tasks, clock=clock)

    def _why_not(self, step: str, pod: Obj) -> str | None:
        notes = self._context.settings.scenario.annotations(
            namespace_of(pod), name_of(pod), labels_of(pod), annotations_of(pod), uid_of(pod)
        )
        return self._failures.next(step, uid_of(pod), Script(notes))

    def _away(self) -> frozenset[str]:
        return self._troubles.away

    def _node(self) -> Obj:
        return self._hooks.node() if self._hooks is not None else {}

    def _driver_changed(self, name: str) -> None:
        self.csi.driver_changed(name)
        if self._hooks is not None:
            self._hooks.wake()

    def join(self, hooks: NodeHooks) -> None:
        self._hooks = hooks
        self.csi.in_use_changed = self.devices.changed = hooks.poke
        self._expander.tell = hooks.tell
        if enabled("ResourceHealthStatus"):
            self.devices.health_changed = hooks.wake_pod

    def loops(self) -> Iterator[tuple[str, Loop]]:
        yield "pretended plugins", self._run

    def node_seen(self, node: Obj) -> None:
        self._attachments.node_changed()
        troubles = troubles_of(annotations_of(node))
        if troubles != self._troubles:
            self._troubles = troubles
            self._changed.set()
            if self._hooks is not None:
                self._hooks.wake()

    async def close(self) -> None:
        await self._tasks.stop()
        await self._drivers.close()

    async def _run(self) -> None:
        assert self._hooks is not None, "join comes before run"
        await self._hooks.registered.wait()
        if self._pretence.drivers:
            await self._writer.ensure()
        while True:
            self._changed.clear()
            await self._keep_plugins(self._troubles)
            for driver in self._pretence.drivers:
                await self._keep_driver(driver, is_away=driver.name in self._troubles.away)
            await self._changed.wait()

    async def _keep_plugins(self, troubles: Troubles) -> None:
        for plugin in self._pretence.plugins:
            known, is_away = self._plugged.get(plugin.resource), plugin.resource in troubles.away
            if known is not None and is_away:
                del self._plugged[plugin.resource]
                await self.devices.unplug(plugin.resource)
            elif known is not None:
                known.tell(troubles.sick)
            elif not is_away:
                client = PretendedPluginClient(plugin, troubles.sick)
                self._plugged[plugin.resource] = client
                await self.devices.plug(plugin.resource, client)

    async def _keep_driver(self, driver: PretendedDriver, *, is_away: bool) -> None:
        is_here = driver.name in self._drivers.names()
        if is_here and is_away:
            await self._drivers.unplug(driver.name)
        elif not is_here and not is_away:
            try:
                await self._drivers.plug(await self._calls(driver), VERSION)
            except PluginRefused as refused:
                log.warning("pretended CSI driver was not registered", why=refused)
                self._tasks.start("CSI driver once more", self._look_later())

    async def _look_later(self) -> None:
        await self._context.clock.sleep(RETRY_SECONDS)
        self._changed.set()

    async def _calls(self, driver: PretendedDriver) -> "DriverCalls":
        # The messages are loaded once there is somebody who pretends to read them.
        calls = await asyncio.to_thread(import_module, "sampan.kubelet.csi.driver_calls")
        pretended = await asyncio.to_thread(import_module, "sampan.kubelet.simulated.pretended_csi")
        context = self._context
        node = context.settings.node_name
        faults = pretended.DriverFaults(context.client, driver.name, node, context.clock)
        made: DriverCalls = calls.DriverCalls(
            calls.DriverPlace(driver.name, "", ""), pretended.PretendedCsi(driver, node, faults),
            clock=context.clock, metrics=context.metrics,
        )  # fmt: skip
        return made


class PretendedMounts:
    """A pod's volumes that drivers of this cluster have; those of others are taken as given."""

    def __init__(self, context: NodeContext, csi: CsiVolumes) -> None:
        self._client, self._csi = context.client, csi
        self._known = context.settings.pretence.known_drivers

    async def mount(self, pod: Obj) -> None:
        """Raises VolumeFailure."""
        for volume in [*await self._claimed(pod), *self._inline(pod)]:
            if volume.driver in self._known:
                # There is no device to be found.
                await self._csi.mount(pod, replace(volume, block=False))

    async def unmount(self, uid: str) -> None:
        if self._csi.has(uid):
            await self._csi.unmount_pod(uid)

    async def _claimed(self, pod: Obj) -> list[CsiVolume]:
        found = []
        for name, claim in claims_of(pod):
            try:
                bound = await self._client.get(PERSISTENT_VOLUME_CLAIMS, namespace_of(pod), claim)
                place = spec_of(bound).get("volumeName") or ""
                volume = await self._client.get(PERSISTENT_VOLUMES, "", place) if place else {}
            except NotFound:
                continue  # as where nothing is pretended
            except ApiError as error:
                raise VolumeFailure(f"volume {name} was not read: {error}") from error
            volume = _translated(name, volume)
            if spec_of(volume).get("csi"):
                found.append(of_persistent_volume(volume, read_only=False))
        return found

    def _inline(self, pod: Obj) -> list[CsiVolume]:
        return [of_inline_volume(volume, pod) for volume in volumes_of(pod) if volume.get("csi")]


def _translated(name: str, volume: Obj) -> Obj:
    """Raises VolumeFailure."""
    try:
        return translated_volume(volume)
    except NotTranslated as error:
        raise VolumeFailure(f"volume {name}: {error}") from error
