"""Plugins of a real node: plugin manager, CSI, device plugins, DRA, resource managers.

Job: build the plugin manager and the handlers behind it; run them; tell them of the node.
Invariant: a node without plugins pays for a watched directory, and nothing else.
Owner: Kubelet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Protocol

from sampan.api.features import enabled
from sampan.api.objects import Obj, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.events_hook import RecordEvent
from sampan.kubelet.csi.allocatable_updates import AllocatableUpdates
from sampan.kubelet.csi.attachments import Attachments
from sampan.kubelet.csi.csi_drivers import CsiDrivers
from sampan.kubelet.csi.csi_node import CsiNodeWriter
from sampan.kubelet.csi.csi_volumes import CsiParts, CsiVolumes
from sampan.kubelet.csi.driver_objects import DriverObjects
from sampan.kubelet.csi.expander import Expander
from sampan.kubelet.csi.mounting import Mounting
from sampan.kubelet.csi.volume_paths import CsiPaths
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.dra.dra_drivers import DraDrivers
from sampan.kubelet.dra.dra_health import DraHealth
from sampan.kubelet.dra.dra_manager import DraManager
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.plugin_manager.plugin_manager import PluginManager
from sampan.kubelet.plugin_manager.shared_root import share_root
from sampan.kubelet.resource_managers.build_managers import build_managers
from sampan.kubelet.resource_managers.cpusets import Cpusets, Running
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.pod_resources import PodResources
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.volumes.storage_operations import StorageOperations
from sampan.kubelet.volumes.tokens import Tokens

log = get_logger(__name__)

CSI_PLUGIN, DEVICE_PLUGIN, DRA_PLUGIN = "CSIPlugin", "DevicePlugin", "DRAPlugin"
Loop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class NodeHooks:
    """Whom plugins belong to."""

    node: Callable[[], Obj]  # as the API shows it
    registered: Flag
    poke: Callable[[], None]  # have its status written
    wake: Callable[[], None]  # the pods that wait for something
    wake_pod: Callable[[str], None]  # one of them, by its uid
    tell: RecordEvent  # events
    running: Running  # containers
    active_pods: Callable[[], Iterable[Obj]]  # that are not over


class Plugins(Protocol):
    """What a node has for plugins, be they real or pretended."""

    @property
    def devices(self) -> DeviceManager: ...

    @property
    def csi(self) -> CsiVolumes: ...

    @property
    def resources(self) -> ResourceAdmission: ...

    def join(self, hooks: NodeHooks) -> None: ...

    def loops(self) -> Iterator[tuple[str, Loop]]: ...

    def node_seen(self, node: Obj) -> None: ...

    async def close(self) -> None: ...


class NodePlugins:
    def __init__(self, context: NodeContext, machine: Machine) -> None:
        """Raises CannotManage, BadState."""
        settings = context.settings
        self._root, self._clock, self._tasks = settings.root_dir, context.clock, Tasks("plugins")
        self._hooks: NodeHooks | None = None
        self._build_csi(context, machine.selinux_context)
        managers = build_managers(
            settings.managers, machine, settings.root_dir, tasks=self._tasks,
            metrics=context.metrics,
        )  # fmt: skip
        self._build_resources(context, managers)
        self._manager = PluginManager(
            f"{settings.root_dir}/plugins_registry",
            {
                CSI_PLUGIN: self._drivers,
                DEVICE_PLUGIN: self.devices,
                DRA_PLUGIN: self._dra_drivers,
            },
            clock=context.clock,
        )

    def _build_csi(self, context: NodeContext, selinux_context: str) -> None:
        settings, client, clock = context.settings, context.client, context.clock
        self._writer = CsiNodeWriter(client, settings.node_name, clock)
        self._csi_node_of = ""  # the uid of the Node that a CSINode was made for
        self._drivers = CsiDrivers(
            self._writer, settings.root_dir, clock=clock, metrics=context.metrics
        )
        self._drivers.changed = self._driver_changed
        self._attachments = Attachments(client, settings.node_name, self._node)
        self._objects = DriverObjects(client, tasks=self._tasks, clock=clock)
        self._limits = AllocatableUpdates(
            self._drivers, self._objects, tasks=self._tasks, clock=clock
        )
        self._objects.changed = self._limits.look
        paths = CsiPaths(settings.root_dir)
        tokens = Tokens(client, clock=clock, rng=context.rng)
        self._mounting = mounting = Mounting(client, paths, settings.node_name, tokens)
        self._expander = Expander(client, mounting, clock)
        parts = CsiParts(
            self._drivers, self._objects, self._attachments, mounting, self._expander, paths,
            StorageOperations(context.metrics, clock), selinux_context,
        )  # fmt: skip
        self.csi = CsiVolumes(parts, tasks=self._tasks, clock=clock)

    def _build_resources(self, context: NodeContext, managers: Managers) -> None:
        """What containers get of their own."""
        settings, clock, metrics = context.settings, context.clock, context.metrics
        self.devices = DeviceManager(
            settings.root_dir, managers.numa, tasks=self._tasks, clock=clock, metrics=metrics
        )
        self._dra_drivers = DraDrivers(
            context.client, settings.node_name, settings.root_dir, tasks=self._tasks, clock=clock
        )
        self._dra_drivers.changed = self._dra_driver_changed
        self._claims = DraManager(
            self._dra_drivers, context.client, settings.root_dir, tasks=self._tasks, clock=clock,
            metrics=metrics,
        )  # fmt: skip
        self._cpusets: Cpusets | None = None
        if managers.cpu is not None:
            self._cpusets = Cpusets(
                managers.cpu, context.runtime, tasks=self._tasks, clock=clock,
                retry_seconds=settings.managers.reconcile_seconds,
            )  # fmt: skip
        topology = settings.managers.topology
        self.resources = ResourceAdmission(
            self.devices, managers, topology, TopologyMetrics(metrics, clock, topology),
            cpusets=self._cpusets, claims=self._claims,
        )  # fmt: skip
        self._pod_resources = PodResources(
            settings.root_dir, self.devices, managers, claims=self._claims.claims_of, clock=clock,
            metrics=metrics,
        )  # fmt: skip

    def join(self, hooks: NodeHooks) -> None:
        """Before it runs."""
        self._hooks = hooks
        self.csi.in_use_changed = hooks.poke
        self._expander.tell = self._mounting.tell = hooks.tell
        self.devices.changed = hooks.poke
        if enabled("ResourceHealthStatus"):
            health = DraHealth(self._clock, self._claims.devices)
            self.devices.health_changed = health.changed = hooks.wake_pod
            self._claims.device_health = health.of
            self._dra_drivers.follow_health = health.follow
        self._pod_resources.active_pods = hooks.active_pods
        if self._cpusets is not None:
            self._cpusets.running = hooks.running

    def _node(self) -> Obj:
        return self._hooks.node() if self._hooks is not None else {}

    def _wake(self) -> None:
        if self._hooks is not None:
            self._hooks.wake()

    async def _is_registered(self) -> None:
        assert self._hooks is not None, "join comes before run"
        await self._hooks.registered.wait()

    def loops(self) -> Iterator[tuple[str, Loop]]:
        yield "plugins", self._run
        yield "CSINode", self._keep_csi_node
        yield "device plugins", self.devices.run
        yield "pod resources", self._pod_resources.run

    def driver_names(self) -> list[str]:
        """Of the CSI drivers that are registered."""
        return self._drivers.names()

    def dra_driver_names(self) -> list[str]:
        """Of the DRA drivers that are registered."""
        return self._dra_drivers.names()

    def node_seen(self, node: Obj) -> None:
        self._attachments.node_changed()
        if self._csi_node_of and uid_of(node) not in ("", self._csi_node_of):
            self._csi_node_of = ""  # another Node of the same name: its CSINode is to be made, too
            self._tasks.start("CSINode", self._keep_csi_node())

    async def close(self) -> None:
        await self._tasks.stop()
        await self._drivers.close()
        await self._dra_drivers.close()

    async def _run(self) -> None:
        try:
            await asyncio.to_thread(share_root, self._root)
        except OSError as error:
            log.warning("kubelet's directory cannot be shared: what drivers in pods mount is seen "
                        "by nobody else", path=self._root, error=error)  # fmt: skip
        await self._is_registered()
        self._tasks.start("slices of before", self._dra_drivers.wipe_at_start())
        await self._manager.run()

    async def _keep_csi_node(self) -> None:
        await self._is_registered()
        self._csi_node_of = uid_of(self._node())
        await self._writer.ensure()

    def _dra_driver_changed(self, _name: str) -> None:
        self._claims.driver_came()
        self._wake()

    def _driver_changed(self, name: str) -> None:
        self._objects.begin()
        self.csi.driver_changed(name)
        self._limits.look(name)
        self._wake()
