"""What a node leaves on a machine: looked at before and after, the difference must be nothing.

Job: list the processes, mounts, network interfaces, packet filter tables, network namespaces and
    cgroups that belong to sampan.
"""

import subprocess
from pathlib import Path


def leftovers(root: Path) -> dict[str, list[str]]:
    """Everything on the machine that names `root` or that only a node makes."""
    return {
        "processes": _processes(str(root)),
        "mounts": _lines_with("/proc/self/mounts", str(root)),
        "interfaces": sorted(
            path.name
            for path in Path("/sys/class/net").iterdir()
            if path.name.startswith(("sampan", "veth"))
        ),
        "tables": [line for line in _said("nft", "list", "tables") if "sampan" in line],
        "namespaces": [str(path) for path in Path("/run/netns").glob("cni-*")],
    }


def _processes(root: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended while we looked
        if root in line and "pytest" not in line:
            found.append(line)
    return sorted(found)


def _lines_with(path: str, text: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if text in line]


def _said(*command: str) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines()
