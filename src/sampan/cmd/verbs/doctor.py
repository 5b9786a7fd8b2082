"""`sampan doctor`: is this machine fit for real containers, and what to do where it is not.

Job: look at one thing after the other: ok, or a problem with its remedy.
Invariant: looking changes nothing.
"""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from sampan.cmd.cluster.data_dir import DataDir, holder
from sampan.core.fast_dataclass import dataclass

OLDEST_KERNEL = (4, 19)
LEAST_DISK_BYTES = 2 * 2**30
CNI_FOLDERS = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    is_ok: bool
    text: str
    remedy: str = ""


def run(data_dir: str, port: int) -> int:
    findings = list(examine(data_dir, port))
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        mark = "ok     " if finding.is_ok else "PROBLEM"
        print(f"{mark}  {finding.what:<{width}}  {finding.text}")
        if not finding.is_ok and finding.remedy:
            print(f"         {'':<{width}}  → {finding.remedy}")
    wrong = [finding for finding in findings if not finding.is_ok]
    if wrong:
        print(f"\n{len(wrong)} of {len(findings)} need attention", file=sys.stderr)
        print("without them: sampan up --runtime simulated", file=sys.stderr)
    return 1 if wrong else 0


def examine(data_dir: str, port: int) -> Iterator[Finding]:
    yield _root()
    yield _kernel()
    yield _cgroups()
    for program, package in (
        ("containerd", "containerd"), ("runc", "runc"), ("nft", "nftables"), ("ip", "iproute2")
    ):  # fmt: skip
        yield _program(program, package)
    yield _cni()
    yield _port(port, data_dir)
    yield _disk(data_dir)
    yield _forwarding()


def _root() -> Finding:
    is_root = os.geteuid() == 0
    text = "root" if is_root else f"uid {os.geteuid()}"
    return Finding("user", is_root, text, "real containers need root: sudo sampan up")


def _kernel() -> Finding:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    wanted = ".".join(map(str, OLDEST_KERNEL))
    return Finding("kernel", numbers >= OLDEST_KERNEL, release, f"{wanted} or newer is needed")


def _cgroups() -> Finding:
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return Finding("cgroups", True, "version 2")
    is_old = Path("/sys/fs/cgroup/memory").exists()
    return Finding("cgroups", is_old, "version 1" if is_old else "none", "mount cgroup2")


def _program(name: str, package: str) -> Finding:
    path = shutil.which(name)
    return Finding(name, bool(path), path or "not found", f"install it: apt install {package}")


def _cni() -> Finding:
    from sampan.network.pods import pod_interfaces

    if pod_interfaces.is_possible():
        return Finding("cni", True, "built in")
    for folder in CNI_FOLDERS:
        if (Path(folder) / "bridge").exists():
            return Finding("cni", True, folder)
    remedy = "install them: apt install containernetworking-plugins"
    return Finding("cni", False, "no plugins found", remedy)


def _port(port: int, data_dir: str) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            pid = holder(DataDir(Path(data_dir).absolute())) if os.path.isdir(data_dir) else None
            if pid:
                return Finding("port", True, f"{port}: this cluster's own (process {pid})")
            return Finding("port", False, f"{port} is taken", "choose another: sampan up --port 0")
    return Finding("port", True, f"{port} is free")


def _disk(data_dir: str) -> Finding:
    folder = Path(data_dir).absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB free in {folder}"
    return Finding("disk", free >= LEAST_DISK_BYTES, text, "2 GiB are needed for images")


def _forwarding() -> Finding:
    path = Path("/proc/sys/net/ipv4/ip_forward")
    is_on = path.exists() and path.read_text().strip() == "1"
    text = "on" if is_on else "off (sampan switches it on with the first node)"
    return Finding(
        "ip_forward", is_on or os.geteuid() == 0, text, "sysctl -w net.ipv4.ip_forward=1"
    )
