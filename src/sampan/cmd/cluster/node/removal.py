"""What a node made on its machine, taken away.

Job: containers, network, cgroups and mounts of one data directory; its namespace, where it has one.
Invariant: what is mounted is unmounted before anything is removed.
"""

import asyncio
import os
import sys
from pathlib import Path

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.places import release_namespace
from sampan.core.clock import SystemClock
from sampan.core.files.remove_tree import remove_tree


async def _remove_pods(data: DataDir, socket_path: str) -> None:
    """Of a runtime that others use, too: only those whose logs are here."""
    from sampan.kubelet.containerd.reset import remove_pods
    from sampan.kubelet.contracts.runtime import RuntimeFailure
    from sampan.kubelet.runtime.cri_runtime import CriRuntime

    logs = data.root / "logs" / "pods"
    uids = frozenset(item.name.rpartition("_")[2] for item in logs.glob("*_*_*"))
    runtime = CriRuntime(socket_path, SystemClock())
    try:
        await remove_pods(runtime, 0.0, uids)
    except RuntimeFailure as error:
        print(f"sampan: pods may be left at {socket_path}: {error}", file=sys.stderr)
    finally:
        await runtime.close()


async def _reset_node(data: DataDir) -> None:
    from sampan.kubelet.containerd import process
    from sampan.network import cni

    async with cni.answered_plugin(data.root):
        await process.reset(data.root, environment=os.environ, clock=SystemClock())


def clear_node(directory: Path) -> None:
    """One of several on this machine, whose process has ended. Blocking."""
    clear(DataDir(directory))
    release_namespace(directory)
    remove_tree(directory)


def clear(data: DataDir) -> None:
    """Containers first, then the network that they need to go."""
    containerd, native_home = data.root / "containerd", data.root / "native"
    socket_path = data.record().get("cri_socket", "")
    if not containerd.exists() and not native_home.exists() and Path(socket_path).is_socket():
        asyncio.run(_remove_pods(data, socket_path))
    if containerd.exists():
        asyncio.run(_reset_node(data))
    if native_home.exists():  # a cluster may have been on one, then on the other
        from sampan.cmd.cluster.node import native

        asyncio.run(native.reset(data.root, SystemClock()))
    if sys.platform == "linux":
        from sampan.kubelet.cgroups.pod_cgroups import remove_root
        from sampan.kubelet.runtime.pod_logs import CONTAINER_LOGS, remove_all
        from sampan.network import cni

        remove_all(data.root / "logs" / "pods", CONTAINER_LOGS)
        # Also of a start that did not come to its containers.
        cni.tear_down(data.root)
        # Whatever a runtime left, or lost sight of: its cgroup says whose it is.
        remove_root(data.root, kill=True)
        if given := data.record().get("cgroup_place"):
            remove_root(data.root, str(given), kill=True)
    if data.kubelet.exists():
        from sampan.core.mounts import unmount_below

        # What is mounted there may be a directory of the user's: it must not be emptied.
        unmount_below(str(data.kubelet))
    if data.csi.exists():
        from sampan.drivers.csi import loop_devices

        # Block volumes of pods that nobody could unstage: their files would stay, without names.
        for file in loop_devices.find_below(str(data.csi)):
            loop_devices.detach(file)
