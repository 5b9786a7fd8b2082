"""The container runtime of a real node: a containerd of our own, one that runs already, or none.

Job: start it where it is ours, connect, and look for what an earlier one left behind.
Invariant: a runtime that does not answer stops the start, with one sentence that says what to do.
"""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.node_flags import cgroup_driver
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.tasks import Tasks
from sampan.kubelet.images.reference import HELLO_IMAGE, PAUSE_IMAGE

if TYPE_CHECKING:
    from sampan.kubelet.containerd.process import PrivateContainerd
    from sampan.kubelet.native.native_runtime import NativeRuntime
    from sampan.kubelet.runtime.cri_runtime import CriRuntime
    from sampan.network.pods.pod_interfaces import PodInterfaces
    from sampan.runtime.programs import Programs

CONNECT_SECONDS = 20.0


class NodeRuntime:
    def __init__(self, settings: UpSettings, data: DataDir, tasks: Tasks, clock: Clock) -> None:
        self._settings, self._data = settings, data
        self._tasks, self._clock = tasks, clock
        self._interfaces: PodInterfaces | None = None
        self._programs: Programs | None = None
        self.containerd: PrivateContainerd | None = None  # where it is ours
        self.containers: CriRuntime | NativeRuntime | None = None
        self.name, self.cgroup_driver = "containerd", ""
        if not settings.cri_socket:
            self.cgroup_driver = cgroup_driver(settings.node, "", private=True)

    async def start_containerd(
        self, conf_dir: Path, bin_dir: Path, interfaces: "PodInterfaces | None"
    ) -> str:
        """Its socket. `interfaces`: who makes pods' interfaces, where sampan does."""
        from sampan.kubelet.containerd.config import ContainerdError, layout
        from sampan.kubelet.containerd.process import PrivateContainerd

        self._write_mirrors(layout(self._data.root).home / "certs.d")
        self._interfaces = interfaces
        containerd = self.containerd = PrivateContainerd(
            self._data.root,
            cni_conf_dir=conf_dir,
            cni_bin_dir=bin_dir,
            environment=os.environ,
            clock=self._clock,
            cgroup_driver=self.cgroup_driver,
            came_back=self.look_for_stray_shims,
        )
        try:
            await containerd.start()
        except ContainerdError as error:
            raise CannotStart(str(error)) from error
        return containerd.socket_path

    def _mirrors(self) -> dict[str, list[str]]:
        mirrors: dict[str, list[str]] = {}
        for registry, url in self._settings.node.registry_mirrors:
            mirrors.setdefault(registry, []).append(url)
        return mirrors

    def _write_mirrors(self, directory: Path) -> None:
        from sampan.kubelet.images.registry_mirrors import MirrorRefused, write_mirrors

        try:
            write_mirrors(directory, self._mirrors())
        except MirrorRefused as error:
            raise CannotStart(str(error)) from error

    async def find_programs(self) -> None:
        """Of `--runtime native`: they are asked while other things are done."""
        from sampan.cmd.cluster.node import native

        limits = not self._settings.rootless or bool(self.cgroup_driver)
        self._programs = await asyncio.to_thread(
            native.working_programs, self._data.root, limits=limits
        )

    async def start_native(
        self, conf_dir: Path, bin_dir: Path, interfaces: "PodInterfaces | None"
    ) -> str:
        """What it is."""
        from sampan.cmd.cluster.node import native
        from sampan.network.cni_configuration import HOST_PORTS

        assert self._programs is not None, "found before"

        if self._settings.network != "none":  # any pod may have host ports
            conf_dir = conf_dir / HOST_PORTS
        network = native.sandbox_network(self._data.root, interfaces, conf_dir, bin_dir)
        self._write_mirrors(native.certs_directory(self._data.root))
        runtime = await native.started_runtime(
            self._data.root, self._programs, network, self._clock
        )
        self.containers = runtime
        info = await runtime.info()
        self.name = info.name
        return f"{info.name} {info.version} and conmon"

    async def connect(self, socket_path: str) -> str:
        """What it says it is."""
        from sampan.kubelet.containerd.own_images import ensure_images
        from sampan.kubelet.contracts.runtime import RuntimeFailure
        from sampan.kubelet.images.hello_image import hello_archive
        from sampan.kubelet.images.pause_image import pause_archive
        from sampan.kubelet.runtime.cri_runtime import CriRuntime

        one_network = self._interfaces is not None  # our own plugin does everything
        cri = self.containers = CriRuntime(socket_path, self._clock, one_network=one_network)
        try:
            info = await cri.connect(CONNECT_SECONDS)
            self.name = info.name
            if self.containerd is not None:
                own = {PAUSE_IMAGE: pause_archive(), HELLO_IMAGE: hello_archive()}
                await ensure_images(cri, socket_path, self._data.root, own, self._clock)
            else:
                said = await cri.cgroup_driver()
                self.cgroup_driver = cgroup_driver(self._settings.node, said, private=False)
        except RuntimeFailure as error:
            raise CannotStart(nobody_at(socket_path, str(error))) from error
        return f"{info.name} {info.version}"

    def look_for_stray_shims(self) -> None:
        self._tasks.supervise("stray shims", self._remove_stray_shims)

    async def _remove_stray_shims(self) -> None:
        """An earlier sampan, or containerd, may have been killed in the middle of a pod's start."""
        if self.containerd is None or self.containers is None:
            return
        from sampan.kubelet.containerd.config import layout
        from sampan.kubelet.containerd.stray_shims import HostLocalAddresses, remove_strays
        from sampan.network import bridge

        await remove_strays(
            layout(self._data.root),
            self._interfaces or HostLocalAddresses(bridge.ipam_directory(self._data.root)),
            self.containers,
            environment=os.environ,
            clock=self._clock,
        )

    async def stop(self) -> None:
        if self.containers is not None:
            await self.containers.close()
        if self.containerd is not None:
            await self.containerd.stop()


def nobody_at(socket_path: str, why: str) -> str:
    return (
        f"no container runtime answers at {socket_path}: {why}; "
        "start it, or leave --cri-socket out to get a private containerd"
    )
