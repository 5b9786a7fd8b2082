"""Containers by crun and conmon for one test: own directories and network, gone afterwards.

Job: `async with native_runtime(directory) as node`.
"""

import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sampan.cmd.cluster.node.sandbox_network import BridgedSandboxes
from sampan.core.clock import SystemClock
from sampan.core.elf import architecture
from sampan.kubelet.images.reference import parse
from sampan.kubelet.native.native_runtime import NativeRuntime
from sampan.network import cni
from sampan.network.pods.pod_interfaces import PodInterfaces
from sampan.runtime.images.archives import import_archive
from sampan.runtime.programs import ProgramsMissing, find_programs


def why_not() -> str:
    """Why it cannot be used here; empty when it can."""
    try:
        find_programs(Path("/nonexistent"), os.environ.get("PATH", os.defpath))
    except ProgramsMissing as error:
        return str(error)
    return "" if cni.makes_interfaces() else "no nft, or no program for this machine"


def import_image(runtime: NativeRuntime, file: Path) -> list[str]:
    machine = architecture(platform.machine())
    return import_archive(runtime.store, file, lambda name: parse(name).full_name(), machine)


@asynccontextmanager
async def native_runtime(data_dir: Path) -> AsyncIterator[NativeRuntime]:
    network = cni.set_up(data_dir)
    interfaces = PodInterfaces(cni.interface_settings(data_dir, network))
    await interfaces.start()
    try:
        programs = find_programs(data_dir / "native" / "state", os.environ["PATH"])
        sandboxes = BridgedSandboxes(interfaces)
        runtime = NativeRuntime(data_dir / "native", programs, sandboxes, SystemClock())
        await runtime.start()
        try:
            yield runtime
        finally:
            for pod in await runtime.pods():
                for sandbox in pod.sandboxes:
                    await runtime.remove_sandbox(sandbox.id)
            await runtime.close()
    finally:
        await interfaces.stop()
        cni.tear_down(data_dir)
