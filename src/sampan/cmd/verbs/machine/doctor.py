"""`sampan doctor`: is this machine fit for real containers, and what to do where it is not.

Job: look at one thing after the other: ok, or a problem with its remedy; do it where asked.
Invariant: looking changes nothing; --fix runs only the commands that it prints.
"""

import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.api.objects import time_text
from sampan.cmd.cluster.data_dir import DataDir, holder
from sampan.cmd.cluster.machine import OLDEST_KERNEL, is_new_enough, missing_rights
from sampan.cmd.verbs.machine import leftovers
from sampan.cmd.verbs.machine.checks import Check, check_lines
from sampan.core.clock import Clock, SystemClock
from sampan.kubelet.cgroups.delegation import Delegated, NotDelegated, judge, look

LEAST_DISK_BYTES = 2 * 2**30
CNI_FOLDERS = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
KUBELET_PORT = 10250
# A clock before this is wrong: certificates would not be valid yet.
OLDEST_CLOCK = 1_767_225_600.0  # 2026-01-01
REPAIR_SECONDS = 600.0
DELEGATING = "systemd-run --user --scope -p Delegate=yes"
DELEGATING_MORE = (
    "put the lines `[Service]` and `Delegate=cpu memory pids` into "
    "/etc/systemd/system/user@.service.d/delegate.conf and start the machine anew"
)


def run(data_dir: str, port: int, *, fix: bool = False) -> int:
    checks = list(examine(data_dir, port))
    print("\n".join(check_lines(checks)))
    if fix and any(check.repair for check in checks if not check.is_ok):
        print()
        repair(checks)
        print()
        checks = list(examine(data_dir, port))
        print("\n".join(check_lines(checks)))
    wrong = [check for check in checks if not check.is_ok and check.is_in_the_way]
    left = [check for check in checks if not check.is_ok and not check.is_in_the_way]
    if wrong:
        print(f"\n{len(wrong)} of {len(checks)} need attention", file=sys.stderr)
        if not fix and any(check.repair for check in wrong):
            print("`sampan doctor --fix` does what can be done", file=sys.stderr)
        print("without them: sampan up --runtime simulated", file=sys.stderr)
    if left and not fix:
        print("`sampan doctor --fix` removes what earlier runs left", file=sys.stderr)
    return 1 if wrong else 0


def repair(checks: Sequence[Check]) -> None:
    """What goes wrong is said, and the next one is done."""
    for command in dict.fromkeys(check.repair for check in checks if not check.is_ok):
        if not command:
            continue
        print(f"$ {shlex.join(command)}", flush=True)
        try:
            done = subprocess.run(command, timeout=REPAIR_SECONDS, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"sampan: {command[0]}: {error}", file=sys.stderr)
            continue
        if done.returncode:
            print(f"sampan: it ended with {done.returncode}", file=sys.stderr)


def examine(data_dir: str, port: int) -> Iterator[Check]:
    if sys.platform != "linux":
        yield another_system(platform.system(), platform.release())
        yield _port(port, data_dir)
        yield clock(SystemClock())
        return
    yield _root()
    yield kernel(platform.release())
    yield _cgroups()
    if os.geteuid() != 0:
        yield limits_without_root(judge(look(os.geteuid(), os.getpid())))
    has_containerd = bool(_path("containerd")) and bool(_path("runc"))
    yield runtime(_native_lacks(), has_containerd, has_crun=bool(_path("crun")))
    for program, package in (("nft", "nftables"), ("ip", "iproute2")):
        yield _program(program, package)
    yield _cni()
    yield _port(port, data_dir)
    yield _kubelet_port()
    yield _disk(data_dir)
    yield clock(SystemClock())
    yield _forwarding()
    yield from leftovers.checks(data_dir)


def another_system(name: str, release: str) -> Check:
    """Nothing is wrong, but one thing cannot be here."""
    text = "the control plane, simulated nodes, the test kit and the client work here"
    where = "on another machine, in a virtual one, or on Windows in WSL 2"
    return Check("system", True, f"{name} {release}: {text}; real containers need Linux ({where})")


def _root() -> Check:
    if os.geteuid() != 0:
        return _ordinary_user()
    lacking = missing_rights()
    text = f"root, without {lacking[0]}" if lacking else "root"
    remedy = "start the container around it with --privileged"
    return Check("user", not lacking, text, remedy)


def _native_lacks() -> str:
    from sampan.runtime.programs import ProgramsMissing, find_programs

    try:
        find_programs(Path("/nonexistent"), os.environ.get("PATH", os.defpath))
    except ProgramsMissing as error:
        return str(error)
    return ""


def runtime(native_lacks: str, has_containerd: bool, *, has_crun: bool = True) -> Check:
    """Which one runs containers here, and which one could."""
    if has_containerd and (native_lacks or not has_crun):
        text = "containerd and runc; with crun and conmon pods start in a quarter of the time"
        return Check("runtime", True, f"{text} (apt install conmon crun)")
    if not native_lacks:
        text = f"{'crun' if has_crun else 'runc'} and conmon"
        other = "; --runtime cri fits, too: containerd and runc" if has_containerd else ""
        return Check("runtime", True, text + other)
    remedy = "install them: apt install conmon crun; or, for --runtime cri: apt install"
    return Check(
        "runtime", False, "no crun and conmon, no containerd", f"{remedy} containerd runc",
        _install("conmon", "crun"),
    )  # fmt: skip


def limits_without_root(found: Delegated | NotDelegated) -> Check:
    """Whether pods of an ordinary user can be limited, and how they could be. Pure."""
    if isinstance(found, NotDelegated):
        text = f"pods have none: {found.why}; where systemd runs: {DELEGATING} sampan up"
        return Check("limits", True, text)
    text = f"of pods, in the cgroup {found.place or '/'}"
    if found.lacking:
        text += f", but none of {', '.join(found.lacking)}: {DELEGATING_MORE}"
    return Check("limits", True, text)


def _ordinary_user() -> Check:
    """Containers in a user namespace need no containerd, but what stands in for it."""
    from sampan.cmd.rootless import rootless

    lacking = rootless.what_is_missing()
    native_lacks = _native_lacks()
    lacking += [native_lacks] if native_lacks else []
    text = f"uid {os.geteuid()}: containers in a user namespace (--runtime native)"
    if lacking:
        return Check(
            "user",
            False,
            f"uid {os.geteuid()}",
            f"install {', '.join(lacking)}, or: sudo sampan up",
        )
    advice = rootless.what_would_help()
    return Check("user", True, f"{text}; {advice}" if advice else text)


def kernel(release: str) -> Check:
    wanted = f"{OLDEST_KERNEL} or newer is needed"
    remedy = f"{wanted}: upgrade the system, or sampan up --runtime simulated"
    return Check("kernel", is_new_enough(release), release, remedy)


def _cgroups() -> Check:
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return Check("cgroups", True, "version 2")
    is_old = Path("/sys/fs/cgroup/memory").exists()
    return Check("cgroups", is_old, "version 1" if is_old else "none", "mount cgroup2")


def _install(*packages: str) -> tuple[str, ...]:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return ()
    return ("apt-get", "install", "-y", "--no-install-recommends", *packages)


def _path(name: str) -> str:
    searched = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin"
    return shutil.which(name, path=searched) or ""


def _program(name: str, package: str) -> Check:
    path = _path(name)
    remedy = f"install it: apt install {package}"
    return Check(name, bool(path), path or "not found", remedy, _install(package))


def _cni() -> Check:
    from sampan.network.pods import pod_interfaces

    if pod_interfaces.is_possible():
        return Check("cni", True, "built in")
    for folder in CNI_FOLDERS:
        if (Path(folder) / "bridge").exists():
            return Check("cni", True, folder)
    package = "containernetworking-plugins"
    return Check(
        "cni", False, "no plugins found", f"install them: apt install {package}", _install(package)
    )


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _port(port: int, data_dir: str) -> Check:
    if _is_free("127.0.0.1", port):
        return Check("port", True, f"{port} is free")
    pid = holder(DataDir(Path(data_dir).absolute())) if os.path.isdir(data_dir) else None
    if pid:
        return Check("port", True, f"{port}: this cluster's own (process {pid})")
    return Check("port", False, f"{port} is taken", "choose another: sampan up --port 0")


def _kubelet_port() -> Check:
    if _is_free("0.0.0.0", KUBELET_PORT):
        return Check("kubelet port", True, f"{KUBELET_PORT} is free")
    return Check("kubelet port", True, f"{KUBELET_PORT} is taken: a node of sampan takes another")


def _disk(data_dir: str) -> Check:
    folder = Path(data_dir).absolute()
    while not os.path.exists(folder):
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB free in {folder}"
    remedy = "2 GiB are needed for images: make room, or choose another --data-dir"
    return Check("disk", free >= LEAST_DISK_BYTES, text, remedy)


def clock(source: Clock) -> Check:
    now = source.now()
    remedy = "certificates are not valid yet: set the clock (timedatectl set-ntp true)"
    return Check("clock", now >= OLDEST_CLOCK, time_text(now), remedy)


def _forwarding() -> Check:
    path = Path("/proc/sys/net/ipv4/ip_forward")
    is_on = path.exists() and path.read_text().strip() == "1"
    text = "on" if is_on else "off (sampan switches it on with the first node)"
    remedy = "sysctl -w net.ipv4.ip_forward=1"
    return Check("ip_forward", is_on or os.geteuid() == 0, text, remedy, tuple(remedy.split()))
