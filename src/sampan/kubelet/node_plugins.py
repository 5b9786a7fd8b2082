"""The plugins of a real node: who registers them, and who has use for them.

Job: build the plugin manager and the handlers behind it; run them; tell them of the node.
Invariant: a node without plugins pays for a watched directory, and nothing else.
Owner: Kubelet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from sampan.api.objects import Obj, uid_of
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.events_hook import Tell
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
from sampan.kubelet.plugin_manager.plugin_manager import PluginManager
from sampan.kubelet.plugin_manager.shared_root import share_root
from sampan.kubelet.resource_managers.numa import NumaNodes
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from sampan.kubelet.volumes.tokens import Tokens

log = get_logger(__name__)

CSI_PLUGIN, DEVICE_PLUGIN = "CSIPlugin", "DevicePlugin"
Loop = Callable[[], Awaitable[None]]


class NodePlugins:
    def __init__(self, context: NodeContext) -> None:
        settings, self._clock = context.settings, context.clock
        self._root, self._node_name = settings.root_dir, settings.node_name
        self._tasks = Tasks("plugins")
        self._node: Callable[[], Obj] = dict
        self._registered = Flag()
        self._wake: Callable[[], None] = lambda: None
        self._writer = CsiNodeWriter(context.client, settings.node_name, context.clock)
        self._drivers = CsiDrivers(
            self._writer, settings.root_dir, clock=context.clock, metrics=context.metrics
        )
        self._drivers.changed = self._driver_changed
        self._attachments = Attachments(context.client, settings.node_name, lambda: self._node())
        self._objects = DriverObjects(context.client, tasks=self._tasks, clock=context.clock)
        self._limits = AllocatableUpdates(
            self._drivers, self._objects, tasks=self._tasks, clock=context.clock
        )
        self._objects.changed = self._limits.look
        paths = CsiPaths(settings.root_dir)
        tokens = Tokens(context.client, clock=context.clock, rng=context.rng)
        mounting = Mounting(context.client, paths, settings.node_name, tokens)
        self._expander = Expander(context.client, mounting, context.clock)
        parts = CsiParts(
            self._drivers, self._objects, self._attachments, mounting, self._expander, paths
        )
        self.csi = CsiVolumes(parts, tasks=self._tasks, clock=context.clock)
        numa = NumaNodes()
        self.devices = DeviceManager(
            settings.root_dir, numa, tasks=self._tasks, clock=context.clock,
            metrics=context.metrics,
        )  # fmt: skip
        self.resources = ResourceAdmission(
            [self.devices], numa, TopologySettings(), context.metrics
        )
        self._manager = PluginManager(
            f"{settings.root_dir}/plugins_registry",
            {CSI_PLUGIN: self._drivers, DEVICE_PLUGIN: self.devices},
            clock=context.clock,
        )
        self._csi_node_of = ""  # the uid of the Node that a CSINode was made for

    def join(
        self,
        *,
        node: Callable[[], Obj],
        registered: Flag,
        poke: Callable[[], None],
        wake: Callable[[], None],
        tell: Tell,
    ) -> None:
        """Whom it belongs to: the Node as the API shows it, whether that is registered, how to
        have its status written, how to wake the pods that wait for something, and how to tell
        events."""
        self._node, self._registered, self._wake = node, registered, wake
        self.csi.in_use_changed = poke
        self._expander.tell = tell
        self.devices.changed = poke

    def loops(self) -> Iterator[tuple[str, Loop]]:
        yield "plugins", self._run
        yield "CSINode", self._keep_csi_node
        yield "device plugins", self.devices.run

    def driver_names(self) -> list[str]:
        """Of the CSI drivers that are registered."""
        return self._drivers.names()

    def node_seen(self, node: Obj) -> None:
        self._attachments.node_changed()
        if self._csi_node_of and uid_of(node) not in ("", self._csi_node_of):
            self._csi_node_of = ""  # another Node of the same name: its CSINode is to be made, too
            self._tasks.start("CSINode", self._keep_csi_node())

    async def close(self) -> None:
        await self._tasks.stop()
        await self._drivers.close()

    async def _run(self) -> None:
        try:
            await asyncio.to_thread(share_root, self._root)
        except OSError as error:
            log.warning("kubelet's directory cannot be shared: what drivers in pods mount is seen "
                        "by nobody else", path=self._root, error=error)  # fmt: skip
        await self._registered.wait()
        await self._manager.run()

    async def _keep_csi_node(self) -> None:
        await self._registered.wait()
        self._csi_node_of = uid_of(self._node())
        await self._writer.ensure()

    def _driver_changed(self, name: str) -> None:
        self._objects.begin()
        self.csi.driver_changed(name)
        self._limits.look(name)
        self._wake()
