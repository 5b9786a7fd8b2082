"""What a cluster leaves on a machine: looked at afterwards, it must be nothing.

Job: list the processes, mounts, namespaces, cgroups, network interfaces, packet filter rules,
    directories and files of one data directory; other clusters on the machine do not count.
"""

import json
import subprocess
from pathlib import Path

from sampan.drivers.csi.loop_devices import find_below
from sampan.kubelet.cgroups.limits import root_of
from sampan.kubelet.containerd.config import layout
from sampan.kubelet.containerd.reset import CNI_RESULTS
from sampan.network.bridge import PodNetwork, owner_mark

NET = Path("/sys/class/net")
CGROUPS = Path("/sys/fs/cgroup")


def network_of(data_dir: Path) -> PodNetwork | None:
    """To be asked while the cluster is there: afterwards nobody remembers it."""
    try:
        return PodNetwork(**json.loads((data_dir / "network.json").read_text()))
    except FileNotFoundError:
        return None


def leftovers(data_dir: Path, network: PodNetwork | None = None) -> dict[str, list[str]]:
    """By kind; empty where nothing is left."""
    mounts = _mounts(str(data_dir))
    bridges = [path.name for path in NET.iterdir() if _alias(path) == owner_mark(data_dir)]
    ports = [
        path.name
        for path in NET.iterdir()
        if (path / "master").exists() and (path / "master").resolve().name in bridges
    ]
    found = {
        "processes": _processes(data_dir),
        "mounts": [line for line in mounts if " - nsfs " not in line],
        "namespaces": [line for line in mounts if " - nsfs " in line],
        "cgroups": sorted(
            str(path)
            for pattern in ("", "*/")
            for path in CGROUPS.glob(f"{pattern}{root_of(data_dir)[1:]}")
        ),
        "interfaces": sorted(bridges + ports),
        "rules": _rules(data_dir, network),
        "directories": _directories(data_dir),
        "files": _network_results(f"{data_dir}/"),
        "loop devices": find_below(str(data_dir)),
    }
    return {kind: things for kind, things in found.items() if things}


def _mounts(data_dir: str) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f"{data_dir}/" in line.split(" ")[4] + "/"]


def _alias(interface: Path) -> str:
    try:
        return (interface / "ifalias").read_text().strip()
    except OSError:
        return ""  # it went away while we looked


def _processes(data_dir: Path) -> list[str]:
    """Known by the directory on their command line, or (in containers) by their cgroup."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            group = (process / "cgroup").read_text()
        except OSError:
            continue  # it ended while we looked
        if f"{data_dir}" in line or f"{root_of(data_dir)}/" in group:
            found.append(f"{process.name} {line.strip()}")
    return sorted(found)


def _rules(data_dir: Path, network: PodNetwork | None) -> list[str]:
    """Tables and rules with the bridge's name or for addresses of its subnet. Where the bridge is
    somebody else's by now, they are, too: also of one that took the name while we looked."""
    if network is None:
        return []
    tables = _lines("nft", "list", "tables")
    prefix = network.subnet.rpartition(".")[0] + "."
    found = [line for line in tables if f" {network.bridge}-" in line] + [
        line
        for line in _lines("iptables-save")
        if f" {network.bridge} " in f"{line} ".replace('"', " ") or prefix in line
    ]
    is_ours = _alias(NET / network.bridge) in ("", owner_mark(data_dir))
    return found if is_ours else []


def _lines(*command: str) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines()


def _directories(data_dir: Path) -> list[str]:
    """The data directory itself, and where its sockets are when its own path is too long."""
    return [str(path) for path in (data_dir, layout(data_dir).socket_dir) if path.exists()]


def _network_results(data_dir: str) -> list[str]:
    """What CNI keeps outside of the data directory names the place of a pod's namespace in it."""
    found = []
    for file in CNI_RESULTS.glob("*"):
        try:
            if data_dir in file.read_text():
                found.append(str(file))
        except OSError:
            continue  # it went away while we looked
    return found
