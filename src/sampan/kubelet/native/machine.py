"""What this machine lets a container have: capabilities, device files, a claim on memory."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sampan.kubelet.contracts.runtime import Device, RuntimeFailure
from sampan.kubelet.native.oci_spec import Machine
from sampan.runtime import apparmor, user_namespace

# In the kernel's order.
_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
# Those that every container has of its own.
_OWN = {"pts", "shm", "mqueue", "fd", "console", ".lxc", ".lxd-mounts", ".udev"}


def this_machine() -> Machine:
    capabilities, rights = _capabilities(), user_namespace.rights()
    own_score = int(Path("/proc/self/oom_score_adj").read_text())
    # The kernel asks for the machine's own capability, not for that of a user namespace.
    may_lower = "CAP_SYS_RESOURCE" in capabilities and not rights.is_inside
    least = -1000 if may_lower else own_score
    devices = tuple(_devices("/dev"))
    # What is loaded into the kernel is not ours to use from a user namespace.
    confines = apparmor.is_loaded() and not rights.is_inside
    return Machine(capabilities, devices, least, rights.has_one_user, is_selinux_on(), confines)


def is_selinux_on() -> bool:
    return Path("/sys/fs/selinux/enforce").exists()


def _capabilities() -> tuple[str, ...]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    mask = int(status["CapBnd"], 16) & int(status["CapPrm"], 16)
    return tuple(f"CAP_{name}" for bit, name in enumerate(_CAPABILITIES) if mask >> bit & 1)


def given_devices(wanted: Sequence[Device]) -> tuple[tuple[dict[str, Any], str], ...]:
    """Those of the node behind what a container was given, each with its access. Raises
    RuntimeFailure."""
    found: list[tuple[dict[str, Any], str]] = []
    for device in wanted:
        path = os.path.realpath(device.host_path)
        access = "".join(letter for letter in "rwm" if letter in device.permissions)
        if os.path.isdir(path):
            below = [{**one, "path": device.container_path + one["path"][len(path) :]}
                     for one in _devices(path)]  # fmt: skip
        else:
            below = [_node(path, device.container_path)]
        found += [(one, access) for one in below]
    return tuple(found)


def _node(path: str, shown: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise RuntimeFailure(f"no device at {path}: {error.strerror}") from error
    if not stat.S_ISCHR(status.st_mode) and not stat.S_ISBLK(status.st_mode):
        raise RuntimeFailure(f"{path} is not a device node")
    return _described(shown, status)


def _described(path: str, status: os.stat_result) -> dict[str, Any]:
    return {
        "path": path, "type": "c" if stat.S_ISCHR(status.st_mode) else "b",
        "major": os.major(status.st_rdev), "minor": os.minor(status.st_rdev),
        "fileMode": stat.S_IMODE(status.st_mode), "uid": status.st_uid, "gid": status.st_gid,
    }  # fmt: skip


def _devices(directory: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name in _OWN or entry.is_symlink():
                continue
            if entry.is_dir():
                found += _devices(entry.path)
                continue
            status = entry.stat()
            if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
                found.append(_described(entry.path, status))
    return found
