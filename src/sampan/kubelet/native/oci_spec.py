"""What the OCI runtime is told of a container: its config.json. Pure.

Job: ContainerSpec, the image's configuration and the pod's surroundings → one JSON document, with
    the defaults that containerd has (mounts, capabilities, masked paths, devices).
Invariant: what cannot be kept is a RuntimeFailure, never left out; but for limits that no
    controller of the node's cgroups can keep, of which the node's start has told.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.contracts.hidden_paths import READ_ONLY_PATHS, masked_paths
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    LinuxResources,
    Mount,
    RuntimeFailure,
    SandboxSpec,
)
from sampan.runtime.apparmor import DEFAULT_PROFILE
from sampan.runtime.images.manifests import ImageConfig

SELINUX_DEFAULT = ("system_u", "system_r", "container_t", "s0")
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW",
    "CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
)  # fmt: skip
_PROPAGATION = {"private": "rprivate", "host_to_container": "rslave", "bidirectional": "rshared"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the process is, as numbers."""

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    home: str = "/"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pod's sandbox has for each of its containers."""

    namespaces: dict[str, str]  # net, ipc, uts → a path; what is missing is the node's own
    files: dict[str, str]  # /etc/resolv.conf → the file on the node
    shared_memory: str  # a directory for /dev/shm; empty: the node's own
    cgroup: str
    unified_cgroups: bool = False
    offered: frozenset[str] | None = None  # what can be limited there; None: everything
    # Devices of the node that the container was given, each with its access: rwm.
    devices: tuple[tuple[dict[str, Any], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine a privileged container may have."""

    capabilities: tuple[str, ...]  # all that we have ourselves
    devices: tuple[dict[str, Any], ...] = ()
    least_oom_score: int = -1000  # what we may give; less than our own takes CAP_SYS_RESOURCE
    has_one_user: bool = False  # nothing can belong to others, or to groups
    selinux: bool = False  # it is on
    apparmor: bool = False  # the profile of containers that name none is loaded


def oci_spec(
    container: ContainerSpec,
    sandbox: SandboxSpec,
    image: ImageConfig,
    identity: Identity,
    surroundings: Surroundings,
    machine: Machine,
) -> dict[str, Any]:
    security = container.security
    mounts = _default_mounts(container, surroundings, machine)
    mounts += _given_mounts(container, surroundings)
    linux: dict[str, Any] = {
        "namespaces": _namespaces(container, sandbox, surroundings),
        "cgroupsPath": surroundings.cgroup,
        "resources": {
            **resources(container.resources, surroundings.offered),
            "devices": _device_rules(container, surroundings),
        },
    }
    if not security.privileged and not security.unmasked_proc:
        linux |= {"maskedPaths": masked_paths(), "readonlyPaths": list(READ_ONLY_PATHS)}
    given = [device for device, _ in surroundings.devices]
    known = {device["path"] for device in given}
    everything = machine.devices if security.privileged else ()
    if given or everything:
        linux["devices"] = [
            *(device for device in everything if device["path"] not in known), *given,
        ]  # fmt: skip
    propagations = {mount.propagation for mount in container.mounts}
    if "bidirectional" in propagations:
        linux["rootfsPropagation"] = "rshared"
    elif "host_to_container" in propagations:
        linux["rootfsPropagation"] = "rslave"
    return {
        "ociVersion": "1.0.2",
        "hostname": sandbox.hostname,
        "root": {"path": "rootfs", "readonly": security.read_only_root},
        "process": process_of(container, sandbox, image, identity, machine),
        "mounts": mounts,
        "linux": linux,
        "annotations": {
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.sandbox-name": sandbox.name,
            "io.kubernetes.cri.sandbox-namespace": sandbox.namespace,
        },
    }


def process_of(
    container: ContainerSpec,
    sandbox: SandboxSpec,
    image: ImageConfig,
    identity: Identity,
    machine: Machine,
) -> dict[str, Any]:
    security = container.security
    found: dict[str, Any] = {
        "terminal": container.tty,
        "user": {
            "uid": identity.uid, "gid": identity.gid, "additionalGids": list(identity.groups),
        },
        "args": _command(container, image),
        "env": _environment(container, sandbox, image, identity),
        "cwd": container.working_dir or image.working_dir or "/",
        "capabilities": _capabilities(container, machine, identity),
        "noNewPrivileges": security.no_new_privileges,
        "oomScoreAdj": max(container.resources.oom_score_adj, machine.least_oom_score),
    }  # fmt: skip
    if profile := _apparmor_profile(container, machine):
        found["apparmorProfile"] = profile
    if security.selinux is not None and machine.selinux:
        # As containerd: left out where it is off; what is not said is as for any container.
        parts = zip(security.selinux, SELINUX_DEFAULT, strict=True)
        found["selinuxLabel"] = ":".join(part or default for part, default in parts)
    return found


def _apparmor_profile(container: ContainerSpec, machine: Machine) -> str:
    """As containerd: who names none has the runtime's own, a privileged container none."""
    wanted = container.security.apparmor
    if wanted == "RuntimeDefault" and not machine.apparmor:
        raise RuntimeFailure(
            "the runtime's AppArmor profile is not loaded: it takes root and apparmor_parser "
            "(apt-get install apparmor)",
            reason="CreateContainerError",
        )
    if wanted == "RuntimeDefault":
        return DEFAULT_PROFILE
    if not wanted:
        return DEFAULT_PROFILE if machine.apparmor and not container.security.privileged else ""
    name, slash, profile = wanted.partition("/")
    return profile if slash and name == "localhost" else ""


def _command(container: ContainerSpec, image: ImageConfig) -> list[str]:
    """As CRI: a command of the pod's replaces the image's entry point and its arguments."""
    if container.command:
        found = [*container.command, *container.args]
    else:
        found = [*image.entrypoint, *(container.args or image.command)]
    if not found:
        raise RuntimeFailure("no command specified", reason="CreateContainerError")
    return found


def _environment(
    container: ContainerSpec, sandbox: SandboxSpec, image: ImageConfig, identity: Identity
) -> list[str]:
    """The later one of the same name wins."""
    found = dict([DEFAULT_PATH.split("=", 1)])
    if container.tty:
        found["TERM"] = "xterm"
    if sandbox.hostname:
        found["HOSTNAME"] = sandbox.hostname
    for entry in image.env:
        name, _, value = entry.partition("=")
        found[name] = value
    found.update(container.env)
    found.setdefault("HOME", identity.home)
    return [f"{name}={value}" for name, value in found.items()]


def _capabilities(
    container: ContainerSpec, machine: Machine, identity: Identity
) -> dict[str, list[str]]:
    security = container.security
    if security.privileged:
        granted = list(machine.capabilities)
    else:
        granted = _granted(security.add_capabilities, security.drop_capabilities, machine)
    # Programs of an ordinary user get none by themselves: only a file of root's may give them.
    ambient: list[str] = []
    kinds = {"bounding": granted, "permitted": granted, "effective": granted, "ambient": ambient}
    if identity.uid != 0:
        kinds |= {"permitted": [], "effective": []}
    return kinds


def _granted(add: Sequence[str], drop: Sequence[str], machine: Machine) -> list[str]:
    names = {_capability(name) for name in add}
    dropped = {_capability(name) for name in drop}
    start: Sequence[str] = DEFAULT_CAPABILITIES
    if "CAP_ALL" in names:
        start = machine.capabilities
    if "CAP_ALL" in dropped:
        start = ()
    found = [name for name in start if name not in dropped]
    found += sorted(names - set(found) - {"CAP_ALL"})
    missing = [name for name in found if name not in machine.capabilities]
    asked_for = [name for name in missing if name in names]
    if asked_for:
        raise RuntimeFailure(
            f"this machine does not let sampan grant {', '.join(asked_for)}",
            reason="CreateContainerError",
        )
    return [name for name in found if name in machine.capabilities]


def _capability(name: str) -> str:
    upper = name.upper()
    return upper if upper.startswith("CAP_") else f"CAP_{upper}"


def _namespaces(
    container: ContainerSpec, sandbox: SandboxSpec, surroundings: Surroundings
) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{"type": "mount"}]
    for kind, name in (("user", "user"), ("net", "network"), ("ipc", "ipc"), ("uts", "uts")):
        if kind in surroundings.namespaces:
            found.append({"type": name, "path": surroundings.namespaces[kind]})
    if "pid" in surroundings.namespaces:
        found.append({"type": "pid", "path": surroundings.namespaces["pid"]})
    elif not container.security.host_pid:
        found.append({"type": "pid"})
    if surroundings.unified_cgroups and not container.security.privileged:
        found.append({"type": "cgroup"})
    return found


def _default_mounts(
    container: ContainerSpec, surroundings: Surroundings, machine: Machine
) -> list[dict[str, Any]]:
    privileged = container.security.privileged
    system = "rw" if privileged else "ro"
    hard = ["nosuid", "noexec", "nodev"]
    terminals = [] if machine.has_one_user else ["gid=5"]
    mounts: list[dict[str, Any]] = [
        _mount("/proc", "proc", "proc", hard),
        _mount("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        _mount(
            "/dev/pts", "devpts", "devpts",
            ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", *terminals],
        ),
        _mount("/dev/mqueue", "mqueue", "mqueue", hard),
        _mount("/sys", "sysfs", "sysfs", [*hard, system]),
        _mount("/sys/fs/cgroup", "cgroup", "cgroup", [*hard, "relatime", system]),
    ]  # fmt: skip
    shared = surroundings.shared_memory or "/dev/shm"
    mounts.append(_mount("/dev/shm", "bind", shared, ["rbind", "rprivate", "rw"]))
    given = {mount.container_path for mount in container.mounts}
    access = "ro" if container.security.read_only_root else "rw"
    for path, file in surroundings.files.items():
        if path not in given:
            mounts.append(_mount(path, "bind", file, ["rbind", "rprivate", access]))
    return [mount for mount in mounts if mount["destination"] not in given]


def _given_mounts(container: ContainerSpec, surroundings: Surroundings) -> list[dict[str, Any]]:
    """Shorter paths first, so that none hides another."""
    ordered = sorted(container.mounts, key=lambda mount: mount.container_path.count("/"))
    return [_given_mount(mount) for mount in ordered]


def _given_mount(mount: Mount) -> dict[str, Any]:
    options = ["rbind", _PROPAGATION[mount.propagation]]
    if mount.image:
        options.append("noexec")
    if mount.recursive_read_only:
        options.append("rro")
    options.append("ro" if mount.read_only else "rw")
    return _mount(mount.container_path, "bind", mount.host_path, options)


def _mount(target: str, kind: str, source: str, options: list[str]) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": source, "options": options}


def _device_rules(container: ContainerSpec, surroundings: Surroundings) -> list[dict[str, Any]]:
    """The runtime adds the usual ones (null, zero, random, …) to what is refused."""
    given = [
        {
            "allow": True, "type": device["type"], "major": device["major"],
            "minor": device["minor"], "access": access,
        }
        for device, access in surroundings.devices
    ]  # fmt: skip
    return [{"allow": container.security.privileged, "access": "rwm"}, *given]


def resources(limits: LinuxResources, offered: Collection[str] | None = None) -> dict[str, Any]:
    """`offered`: what can be limited where the container will be; None: everything."""
    if offered is not None:
        limits = _within(limits, offered)
    found: dict[str, Any] = {}
    cpu = {
        name: value
        for name, value in (
            ("shares", limits.cpu_shares),
            # None is what the kernel begins with; crun writes -1 as a number that it refuses.
            ("quota", max(0, limits.cpu_quota)), ("period", limits.cpu_period),
            ("cpus", limits.cpus), ("mems", limits.memory_nodes),
        )
        if value
    }  # fmt: skip
    if cpu:
        found["cpu"] = cpu
    if limits.memory_limit_bytes:
        found["memory"] = {"limit": limits.memory_limit_bytes}
        if limits.swap_bytes is None:
            found["memory"]["swap"] = limits.memory_limit_bytes
    if limits.unified:
        found["unified"] = limits.unified
    if limits.hugepages:
        found["hugepageLimits"] = [
            {"pageSize": size, "limit": limit} for size, limit in sorted(limits.hugepages.items())
        ]
    return found


def _within(limits: LinuxResources, offered: Collection[str]) -> LinuxResources:
    """The runtime refuses the rest; that it has no effect was said at the node's start."""
    if "cpu" not in offered:
        limits = replace(limits, cpu_shares=0, cpu_quota=0, cpu_period=0)
    if "cpuset" not in offered:
        limits = replace(limits, cpus="", memory_nodes="")
    if "memory" not in offered:
        limits = replace(limits, memory_limit_bytes=0, swap_bytes=None, oom_group=False)
    if "hugetlb" not in offered:
        limits = replace(limits, hugepages={})
    return limits
