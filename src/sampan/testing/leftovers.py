"""What a cluster leaves on a machine: looked at afterwards, it must be nothing.

Job: list the processes, mounts, cgroups, network interfaces and packet filter tables of one data
    directory; other clusters on the machine do not count.
"""

import subprocess
from pathlib import Path

from sampan.kubelet.cgroup_limits import root_of
from sampan.network.cni import owner_mark

NET = Path("/sys/class/net")
CGROUPS = Path("/sys/fs/cgroup")


def leftovers(data_dir: Path) -> dict[str, list[str]]:
    bridges = [path.name for path in NET.iterdir() if _alias(path) == owner_mark(data_dir)]
    ports = [
        path.name
        for path in NET.iterdir()
        if (path / "master").exists() and (path / "master").resolve().name in bridges
    ]
    found = {
        "processes": _processes(str(data_dir)),
        "mounts": [
            line
            for line in Path("/proc/self/mounts").read_text().splitlines()
            if str(data_dir) in line
        ],
        "cgroups": sorted(
            str(path)
            for pattern in ("", "*/")
            for path in CGROUPS.glob(f"{pattern}{root_of(data_dir)[1:]}")
        ),
        "interfaces": sorted(bridges + ports),
        "tables": [line for line in _tables() if any(bridge in line for bridge in bridges)],
    }
    return {kind: things for kind, things in found.items() if things}


def _alias(interface: Path) -> str:
    try:
        return (interface / "ifalias").read_text().strip()
    except OSError:
        return ""  # it went away while we looked


def _processes(data_dir: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended while we looked
        if data_dir in line:
            found.append(line)
    return sorted(found)


def _tables() -> list[str]:
    try:
        done = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, timeout=10)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines()
