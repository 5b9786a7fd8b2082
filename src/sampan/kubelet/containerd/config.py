"""How a private containerd is set up on this machine: what the machine has, and the config file.

Job: look at the machine once (HostFacts); turn paths and facts into a config.toml. The latter is
    pure.
Invariant: nothing that the file names is shared with another containerd, Docker or sampan.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.names import CGROUPFS, SYSTEMD
from sampan.kubelet.contracts.runtime import HOST_PORTS_HANDLER
from sampan.kubelet.images.reference import PAUSE_IMAGE

# The kernel takes 107 bytes; containerd itself refuses more than 104.
_LONGEST_SOCKET = 104
_CAP_SYS_RESOURCE = 24
# containerd, runc and iptables live in directories that an ordinary PATH may leave out.
# Overlay mounts separate their options with these.
_UNUSABLE_IN_PATHS = (",", ":", "\\", '"', "\n")


class ContainerdError(Exception):
    """The private containerd cannot be had; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    apparmor: bool
    may_lower_oom_score: bool
    cgroups: str  # v2 | v1 | hybrid
    crun: str  # path, or empty


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a private containerd keeps its things, below one data directory."""

    data_dir: Path
    socket_dir: Path

    @property
    def home(self) -> Path:
        return self.data_dir / "containerd"

    @property
    def root(self) -> Path:
        return self.home / "root"

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def runtime_root(self) -> Path:
        return self.state / "runc"

    @property
    def config(self) -> Path:
        return self.home / "config.toml"

    @property
    def log(self) -> Path:
        return self.home / "containerd.log"

    @property
    def record(self) -> Path:
        """Which process it is: survives a sampan that was killed."""
        return self.home / "process.json"

    @property
    def socket(self) -> Path:
        return self.socket_dir / "containerd.sock"

    @property
    def socket_link(self) -> Path:
        """Leads to the socket's directory where that is not in the data directory."""
        return self.home / "run"


def layout(data_dir: Path) -> Layout:
    data_dir = data_dir.resolve()
    bad = next((path for path in _UNUSABLE_IN_PATHS if path in str(data_dir)), None)
    if bad is not None:
        raise ContainerdError(f"the data directory {data_dir} may not have {bad!r} in its name")
    inside = data_dir / "containerd"
    longest = f"{inside}/containerd.sock.ttrpc"
    if len(longest.encode()) <= _LONGEST_SOCKET:
        return Layout(data_dir, inside)
    short = hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]
    return Layout(data_dir, Path(f"/run/sampan-{short}"))


def host_facts(search_path: str) -> HostFacts:
    return HostFacts(
        apparmor=_first_letter("/sys/module/apparmor/parameters/enabled") == "Y",
        may_lower_oom_score=_has_capability(_CAP_SYS_RESOURCE),
        cgroups=_cgroups(),
        crun=shutil.which("crun", path=search_path) or "",
    )


def missing_programs(path: str) -> list[str]:
    """Each, with the Debian/Ubuntu package that brings it; empty when all are there."""
    missing = []
    for program in ("containerd", "containerd-shim-runc-v2", "ctr"):
        if shutil.which(program, path=path) is None:
            missing.append(f"{program} (apt package containerd)")
    if shutil.which("runc", path=path) is None:
        missing.append("runc (apt package runc)")
    return missing


def config_toml(
    paths: Layout,
    facts: HostFacts,
    cni_conf_dir: Path,
    cni_bin_dir: Path,
    cgroup_driver: str = CGROUPFS,
    *,
    host_ports: bool = True,
) -> str:
    """Version 2 of the format: 1.6 and 1.7 read it, and 2.x migrates it when it starts.
    `host_ports`: pods that have some have a network configuration of their own."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    lines = [
        "version = 2",
        f"root = {_text(paths.root)}",
        f"state = {_text(paths.state)}",
        "oom_score = 0",
        f"disabled_plugins = {json.dumps(_unneeded_plugins())}",
        "[grpc]",
        f"  address = {_text(paths.socket)}",
        "[ttrpc]",
        f"  address = {_text(str(paths.socket) + '.ttrpc')}",
        "[debug]",
        '  level = "warn"',
        '[plugins."io.containerd.internal.v1.opt"]',
        f"  path = {_text(paths.home / 'opt')}",
        # From 2.0 on NRI is on by default, with one socket for the whole machine.
        '[plugins."io.containerd.nri.v1.nri"]',
        "  disable = true",
        f"[{cri}]",
        f"  sandbox_image = {_text(PAUSE_IMAGE)}",
        f"  disable_apparmor = {_flag(not facts.apparmor)}",
        f"  restrict_oom_score_adj = {_flag(not facts.may_lower_oom_score)}",
        "  netns_mounts_under_state_dir = true",
        '  stream_server_address = "127.0.0.1"',
        '  stream_server_port = "0"',
        "  enable_unprivileged_ports = true",
        "  enable_unprivileged_icmp = true",
        "  enable_cdi = true",  # 1.7 knows it and has it off, 1.6 does not know it
        f"  [{cri}.cni]",
        f"    bin_dir = {_text(cni_bin_dir)}",
        f"    conf_dir = {_text(cni_conf_dir)}",
        # The first address of a pod is of the cluster's first family, not always the one of IPv4.
        '    ip_pref = "cni"',
        f"  [{cri}.registry]",
        f"    config_path = {_text(paths.home / 'certs.d')}",
        f"  [{cri}.containerd]",
        '    snapshotter = "overlayfs"',
        '    default_runtime_name = "runc"',
    ]
    special = cni_conf_dir / "host-ports" if host_ports else None
    return "\n".join([*lines, *_runtimes(paths, facts, special, cgroup_driver)]) + "\n"


def _runtimes(
    paths: Layout, facts: HostFacts, host_ports: Path | None, cgroup_driver: str
) -> Iterator[str]:
    root, crun_root = _text(paths.runtime_root), _text(paths.state / "crun")
    yield from _runtime("runc", cgroup_driver, root)
    if host_ports is not None:
        # The same runtime, with a network configuration of its own.
        network = (f"      cni_conf_dir = {_text(host_ports)}",)
        yield from _runtime(HOST_PORTS_HANDLER, cgroup_driver, root, own=network)
    if facts.crun:
        binary = (f"        BinaryName = {_text(facts.crun)}",)
        yield from _runtime("crun", cgroup_driver, crun_root, options=binary)


def _runtime(
    name: str,
    cgroup_driver: str,
    root: str,
    *,
    own: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Iterator[str]:
    table = f'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}'
    yield f"    [{table}]"
    yield '      runtime_type = "io.containerd.runc.v2"'
    yield from own
    yield f"      [{table}.options]"
    yield f"        SystemdCgroup = {_flag(cgroup_driver == SYSTEMD)}"
    yield from options
    yield f"        Root = {root}"


def _unneeded_plugins() -> list[str]:
    """Snapshotters that are never used cost time at each start, and warnings."""
    return [
        f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")
    ]


def _text(value: object) -> str:
    return json.dumps(str(value))


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _first_letter(path: str) -> str:
    try:
        return Path(path).read_text()[:1]
    except OSError:
        return ""


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def _cgroups() -> str:
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "v2"
    return "hybrid" if Path("/sys/fs/cgroup/unified").exists() else "v1"
