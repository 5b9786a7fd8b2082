"""The first process of a pod whose containers see each other's: the pause program, by itself.

Job: start it, find its process namespace, end it. Pods that do not share have none.
Invariant: it belongs to its sandbox, and has nothing but its one program to read.
"""

import contextlib
import json
import os
import platform
from pathlib import Path

from sampan.core.elf import architecture
from sampan.kubelet.images.pause_program import pause_program
from sampan.runtime import monitor
from sampan.runtime.monitor import ConmonFiles, ContainerFailure
from sampan.runtime.programs import Programs
from sampan.runtime.stale_processes import remove_stale

_PROGRAM = "/pause"
_NOBODY = 65535


async def start_first_process(
    programs: Programs, place: Path, sandbox_id: str, cgroup: str
) -> None:
    """`place`: the sandbox's, with its namespaces. Raises ContainerFailure, OSError."""
    bundle = place / "first"
    for name in ("proc", "dev"):  # root of the pod's own users could not make them
        (bundle / "rootfs" / name).mkdir(parents=True, exist_ok=True)
    program = bundle / "rootfs" / _PROGRAM.removeprefix("/")
    program.write_bytes(pause_program(architecture(platform.machine())))
    program.chmod(0o755)
    (bundle / "config.json").write_text(json.dumps(_spec(place, cgroup)))
    await monitor.create(programs, sandbox_id, ConmonFiles(bundle), monitor.Stdio("/dev/null"))
    await monitor.start(programs, sandbox_id)


def _spec(place: Path, cgroup: str) -> dict[str, object]:
    shared = [
        {"type": kind, "path": str(place / name)}
        for kind, name in (("user", "user"), ("network", "net"), ("ipc", "ipc"), ("uts", "uts"))
        if (place / name).exists()
    ]
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "user": {"uid": _NOBODY, "gid": _NOBODY},
            "args": [_PROGRAM],
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        ],
        "linux": {
            "namespaces": [{"type": "mount"}, {"type": "pid"}, *shared],
            "cgroupsPath": cgroup,
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }


def process_namespace(place: Path) -> str:
    """Empty where that process is gone. `place` is named as the sandbox is: until the process has
    become its program, it has the runtime's words."""
    for word in (place.name, _PROGRAM):
        with contextlib.suppress(OSError, ValueError):
            pid = int((place / "first" / "pid").read_text())
            os.close(monitor.open_process(pid, word))
            return f"/proc/{pid}/ns/pid"
    return ""


async def end_first_process(programs: Programs, place: Path, sandbox_id: str) -> None:
    """Raises OSError."""
    if not (place / "first").is_dir():
        return
    try:
        await monitor.call(programs, "delete", "--force", sandbox_id)
    except ContainerFailure:  # it never was whole, or is gone
        await remove_stale(programs, sandbox_id, place / "first")
