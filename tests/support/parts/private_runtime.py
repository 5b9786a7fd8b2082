"""A real containerd for one test: its own directories, network and processes, gone afterwards.

Job: `async with private_runtime(directory) as node`, with the pause image on board.
"""

import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sampan.cmd.cluster.node.runtime_choice import missing_for_network
from sampan.core.clock import Clock, SystemClock
from sampan.core.elf import architecture
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.containerd import process
from sampan.kubelet.containerd.config import missing_programs
from sampan.kubelet.containerd.own_images import ensure_images
from sampan.kubelet.images.archive import import_archive
from sampan.kubelet.images.pause_image import pause_archive
from sampan.kubelet.images.reference import PAUSE_IMAGE
from sampan.kubelet.runtime.cri_runtime import CriRuntime
from sampan.network import bridge, cni, cni_configuration
from sampan.runtime.programs import system_path

CONNECT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class PrivateNode:
    runtime: CriRuntime
    daemon: process.PrivateContainerd
    network: bridge.PodNetwork
    data_dir: Path
    clock: Clock

    async def import_image(self, archive: bytes) -> list[str]:
        file = self.data_dir / "image.tar"
        file.write_bytes(archive)
        names = await import_archive(self.daemon.socket_path, file)
        deadline = self.clock.monotonic() + CONNECT_SECONDS
        for name in names:
            # CRI hears of it by an event, some milliseconds later.
            while await self.runtime.image(name) is None:
                assert self.clock.monotonic() < deadline, f"{name} does not appear"
                await self.clock.sleep(0.005)
        return names


def why_not() -> str:
    """Why no containerd can be started here; empty when one can."""
    path = system_path({})
    missing = missing_for_network(path, interfaces=cni.makes_interfaces())
    return ", ".join([*missing_programs(path), *missing])


def daemon_for(data_dir: Path, clock: Clock) -> process.PrivateContainerd:
    return process.PrivateContainerd(
        data_dir,
        cni_conf_dir=cni_configuration.conf_directory(data_dir),
        cni_bin_dir=cni.plugins_of(data_dir),
        environment={},
        clock=clock,
    )


@asynccontextmanager
async def private_runtime(data_dir: Path, *, reference: bool = False) -> AsyncIterator[PrivateNode]:
    """`reference`: the reference plugins make the pods' interfaces, not we."""
    assert architecture(platform.machine())
    clock = SystemClock()
    network = cni.set_up(data_dir, reference=reference)
    daemon = daemon_for(data_dir, clock)
    try:
        async with cni.answered_plugin(data_dir):
            try:
                await daemon.start()
                runtime = CriRuntime(
                    daemon.socket_path, clock, one_network=cni.uses_own_plugin(data_dir)
                )
                try:
                    await runtime.connect(CONNECT_SECONDS)
                    own = {PAUSE_IMAGE: pause_archive()}
                    await ensure_images(runtime, daemon.socket_path, data_dir, own, clock)
                    yield PrivateNode(runtime, daemon, network, data_dir, clock)
                finally:
                    await runtime.close()
                    await daemon.stop()
            finally:
                await process.reset(data_dir, environment={}, clock=clock)
    finally:
        cni.tear_down(data_dir)
