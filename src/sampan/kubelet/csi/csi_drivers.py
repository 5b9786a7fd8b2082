"""CSI drivers of a node: registration, reachability, CSINode.

Job: take the drivers that the plugin manager hands over, ask each who it is on this node, keep the
    CSINode true; say who a volume's driver is.
Invariant: a driver is in CSINode before it counts as registered, and out of it when it has gone.
Owner: Kubelet; the plugin manager calls it as the handler of CSI plugins.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.patterns import lazy_pattern
from sampan.kubelet.contracts.paths import own_path
from sampan.kubelet.csi.csi_node import CsiNodeFailure, CsiNodeWriter
from sampan.kubelet.csi.csi_volume import PLUGIN
from sampan.kubelet.plugin_manager.plugin_manager import PluginRefused
from sampan.kubelet.plugin_manager.plugin_state import Plugin

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import DriverCalls

log = get_logger(__name__)

Version = tuple[int, ...]
_VERSION = lazy_pattern(r"v?(\d+(?:\.\d+)+)")


class DriverMissing(Exception):
    """Nobody of that name is registered."""


@dataclass(frozen=True, slots=True)
class _Driver:
    version: Version
    calls: "DriverCalls"


def highest_version(written: tuple[str, ...]) -> Version:
    """Raises ValueError, in upstream's words."""
    if not written:
        raise ValueError("empty array for supported versions")
    read = [tuple(map(int, found[1].split("."))) for item in written
            if (found := _VERSION.match(item))]  # fmt: skip
    fitting = [version for version in read if version[0] <= 1]
    if not fitting:
        listed = f"[{' '.join(written)}]"
        raise ValueError(
            f"could not find a highest supported version from versions ({listed}) reported: <nil>"
        )
    highest = max(fitting)
    if highest[0] != 1:
        raise ValueError(
            f"highest supported version reported is {version_text(highest)}, must be v1.x"
        )
    return highest


def version_text(version: Version) -> str:
    return ".".join(map(str, version))


class CsiDrivers:
    def __init__(
        self, writer: CsiNodeWriter, root_dir: str, *, clock: Clock, metrics: Metrics
    ) -> None:
        self._writer, self._root = writer, root_dir
        self._clock, self._metrics = clock, metrics
        self._drivers: dict[str, _Driver] = {}
        self.changed: Callable[[str], None] = lambda _driver: None  # one came or went

    def names(self) -> list[str]:
        return sorted(self._drivers)

    def calls(self, name: str) -> "DriverCalls":
        """Raises DriverMissing."""
        found = self._drivers.get(name)
        if found is None:
            raise DriverMissing(
                f"driver name {name} not found in the list of registered CSI drivers"
            )
        return found.calls

    def validate(self, plugin: Plugin) -> None:
        try:
            self._version("ValidatePlugin", plugin)
        except PluginRefused as refused:
            what = f"validation failed for CSI Driver {plugin.name} at endpoint {plugin.endpoint}"
            raise PluginRefused(f"{what}: {refused}") from refused

    async def register(self, plugin: Plugin) -> None:
        version = self._version("RegisterPlugin", plugin)
        await self.plug(await self._connect(plugin), version)

    async def plug(self, calls: "DriverCalls", version: Version) -> None:
        """Raises PluginRefused."""
        try:
            await self._writer.install(await calls.node_info())
        except (GrpcFailure, CsiNodeFailure) as error:
            await calls.close()
            raise PluginRefused(str(error)) from error
        self._drivers[calls.name] = _Driver(version, calls)
        self.changed(calls.name)

    async def deregister(self, plugin: Plugin) -> None:
        await self.unplug(plugin.name)

    async def unplug(self, name: str) -> None:
        driver = self._drivers.pop(name, None)
        if driver is not None:
            await driver.calls.close()
        try:
            await self._writer.uninstall(name)
        except CsiNodeFailure as error:
            log.warning("CSI driver stays in CSINode", driver=name, error=error)
        self.changed(name)

    async def ask_again(self, name: str) -> None:
        """How many volumes the node can take may have changed."""
        try:
            await self._writer.update(await self.calls(name).node_info())
        except (DriverMissing, GrpcFailure, CsiNodeFailure) as error:
            log.warning("CSI driver was not asked again", driver=name, error=error)

    async def close(self) -> None:
        for driver in self._drivers.values():
            await driver.calls.close()

    async def _connect(self, plugin: Plugin) -> "DriverCalls":
        # gRPC and the messages are loaded beside the loop, once there is somebody to talk to.
        module = await asyncio.to_thread(import_module, "sampan.kubelet.csi.driver_calls")
        place = module.DriverPlace(plugin.name, plugin.endpoint, self._root)
        socket = module.CsiSocket(own_path(plugin.endpoint, self._root))
        calls: DriverCalls = module.DriverCalls(
            place, socket, clock=self._clock, metrics=self._metrics
        )
        return calls

    def _version(self, caller: str, plugin: Plugin) -> Version:
        """Raises PluginRefused."""
        what = f'{PLUGIN}: {caller} for CSI driver "{plugin.name}" failed.'
        if not plugin.versions:
            raise PluginRefused(f"{what} Plugin returned an empty list for supported versions")
        try:
            highest = highest_version(plugin.versions)
        except ValueError as error:
            listed = f"[{' '.join(chr(34) + item + chr(34) for item in plugin.versions)}]"
            why = f"None of the versions specified {listed} are supported. err={error}"
            raise PluginRefused(f"{what} {why}") from error
        known = self._drivers.get(plugin.name)
        if known is not None and not known.version < highest:
            why = (
                "Another driver with the same name is already registered with a higher supported "
                f'version: "{version_text(known.version)}"'
            )
            raise PluginRefused(f"{what} {why}")
        return highest
