"""A node's CSI volumes with a real driver at a real socket, and an API in memory.

Job: what the kubelet has for CSI, put together as for a real node; the driver listens in the same
    process, and every call to it is kept.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.api.resources import CSI_DRIVERS, NODES
from sampan.core.clock import SystemClock
from sampan.core.grpc.socket_server import Methods, SocketServer, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.mounts import mounts_below
from sampan.drivers.csi.csi_driver import driver_methods
from sampan.drivers.csi.settings import NAME, DriverSettings
from sampan.drivers.registrar import Registrar
from sampan.kubelet.csi.csi_volume import CsiVolume
from sampan.kubelet.node.machine import SIMULATED
from sampan.kubelet.node_plugins import NodePlugins
from sampan.plugins.csi import CsiSocket, messages
from sampan.plugins.registration import CSI_PLUGIN, Introduction
from tests.support.worlds.node_agent import NODE, Heard, node_agent
from tests.support.worlds.small_api import SmallApi

__all__ = ["NODE", "CsiNode"]


class CsiNode:
    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, SystemClock()
        self.api = SmallApi(self.clock)
        self.kubelet_root = root / "kubelet"
        self.volumes_root = root / "volumes"
        self.endpoint = self.kubelet_root / "plugins" / NAME / "csi.sock"
        self.calls: list[tuple[str, Any]] = []  # method and request, in order
        self.faults: dict[str, list[GrpcFailure]] = {}  # by method: taken from the front
        self.heard = Heard()
        self.machine = SIMULATED
        self.plugins: NodePlugins | None = None

    async def begin(self, **driver: object) -> None:
        """The API's part: a node, and what it says of the driver."""
        await self.api.node(NODE)
        if driver.pop("exists", True):
            spec = {"attachRequired": False, "fsGroupPolicy": "File",
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"], **driver}  # fmt: skip
            await self.api.create(CSI_DRIVERS, {"metadata": {"name": NAME}, "spec": spec})

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[NodePlugins]:
        """One life of the kubelet's part."""
        root = str(self.kubelet_root)
        async with node_agent(
            self.api, root, self.clock, self.heard, machine=self.machine
        ) as plugins:
            self.plugins = plugins
            yield plugins

    def node(self) -> Obj:
        return self.api.find(NODES, "", NODE) or {}

    @asynccontextmanager
    async def driver(self, **settings: Any) -> AsyncIterator[CsiSocket]:
        """A driver that registers; its socket, to make volumes with."""
        chosen = DriverSettings(NODE, str(self.volumes_root), **settings)
        self.endpoint.parent.mkdir(parents=True, exist_ok=True)
        server = SocketServer(str(self.endpoint), self._kept(driver_methods(chosen, self.clock)))
        said = Introduction(CSI_PLUGIN, NAME, str(self.endpoint), ("1.0.0",))
        registrar = Registrar(str(self.kubelet_root / "plugins_registry" / "reg.sock"), said)
        await server.start()
        await registrar.start()
        socket = CsiSocket(str(self.endpoint))
        try:
            await self.until(lambda: self.plugins is None or NAME in self.plugins.driver_names())
            yield socket
        finally:
            await socket.close()
            await registrar.stop()
            await server.stop()

    def _kept(self, methods: Methods) -> Methods:
        return {path: self._noting(path, method) for path, method in methods.items()}

    def _noting(self, path: str, method: Any) -> Unary:
        name = path.rpartition("/")[2]

        async def handle(request: Any) -> Any:
            self.calls.append((name, request))
            if self.faults.get(name):
                raise self.faults[name].pop(0)
            return await method.handle(request)

        return Unary(method.request, handle)

    def methods(self) -> list[str]:
        """What was asked for, without what only asks."""
        asking = ("NodeGetInfo", "NodeGetCapabilities")
        return [name for name, _ in self.calls if name.startswith("Node") and name not in asking]

    def last(self, method: str) -> Any:
        return next(request for name, request in reversed(self.calls) if name == method)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.005)

    def left(self) -> list[str]:
        """Mounts and notes that nobody needs."""
        walked = os.walk(self.kubelet_root)  # what goes meanwhile is no failure
        notes = [f"{place}/vol_data.json" for place, _, files in walked if "vol_data.json" in files]
        mounts = [place for place in mounts_below(str(self.kubelet_root))
                  if place != str(self.kubelet_root)]  # fmt: skip
        return notes + mounts


async def make_volume(
    socket: CsiSocket, name: str, *, block: bool = False, **more: str
) -> CsiVolume:
    """Made by the driver, as a provisioner has it made."""
    capability = messages.VolumeCapability()
    capability.access_mode.mode = 1
    if block:
        capability.block.SetInParent()
    else:
        capability.mount.SetInParent()
    await socket.controller(
        "CreateVolume",
        messages.CreateVolumeRequest(
            name=name,
            volume_capabilities=[capability],
            parameters=more,
            capacity_range=messages.CapacityRange(required_bytes=32 << 20),
        ),
    )
    return CsiVolume(f"pv-{name}", NAME, name, block=block, access_modes=("ReadWriteOnce",))


def make_pod(uid: str, **spec: Any) -> Obj:
    metadata = {"name": f"pod-{uid}", "namespace": "shop", "uid": uid}
    return {"kind": "Pod", "metadata": metadata, "spec": {"serviceAccountName": "clerk", **spec}}


def short_root() -> Path:
    """Sockets have short paths."""
    return Path(tempfile.mkdtemp(prefix="sampan-csi-"))
