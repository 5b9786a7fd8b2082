"""The cgroups of a node's pods: made before the sandbox, removed when the pod has ended.

Job: folders and limits in the kernel's hierarchies: one of version 2, or several of version 1 (and
    beside them a version 2 one without controllers: hybrid). They are made here (driver cgroupfs),
    or systemd is told to make them as slices.
Invariant: a pod's folder is in all hierarchies or, after `remove`, in none.
Invariant: only folders below `root` are ever touched.
Owner: Kubelet; none for simulated nodes and for runtimes that choose the place themselves.
"""

import contextlib
import errno
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.log import get_logger
from sampan.kubelet.cgroups import systemd
from sampan.kubelet.cgroups.delegation import offered_controllers
from sampan.kubelet.cgroups.limits import (
    FOLDERS,
    NO_BOUNDS,
    Limits,
    PodBounds,
    Setting,
    amount_in,
    pod_cgroup,
    pod_limits,
    root_of,
    settings_v1,
    settings_v2,
)
from sampan.kubelet.cgroups.names import (
    CGROUPFS,
    DRIVERS,
    SYSTEMD,
    container_folder,
    folder,
    pod_folder,
    uid_in,
)

log = get_logger(__name__)

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "hugetlb", "io")


_KILL_ROUNDS, _KILL_POLL_SECONDS = 50, 0.02


class CgroupFailure(Exception):
    """The kernel refused."""


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """In bytes: what a pod uses and may use at most, and what its containers use, by id."""

    pod: float
    limit: float
    containers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """`unified`: the only hierarchy of version 2. `by_controller`: those of version 1."""

    unified: Path | None
    by_controller: dict[str, Path]

    @property
    def all(self) -> list[Path]:
        """Each once; with several controllers in one hierarchy, or with links, there are fewer."""
        found = [self.unified] if self.unified is not None else list(self.by_controller.values())
        return list(dict.fromkeys(path.resolve() for path in found))


def find_hierarchies(mount: Path = MOUNT) -> Hierarchies | None:
    """None where the kernel shows none."""
    if (mount / "cgroup.controllers").exists():
        return Hierarchies(mount, {})
    found = {
        path.name: path
        for path in sorted(mount.iterdir() if mount.is_dir() else ())
        if (path / "cgroup.procs").exists()
    }
    return Hierarchies(None, found) if "memory" in found and "cpu" in found else None


def remove_root(data_dir: Path, place: str = "", *, kill: bool = False) -> None:
    """At the end of a node: nothing that does not run stays, whoever made it; with `kill`, what
    runs neither. `place`: the cgroup that was given to us, if one was."""
    hierarchies = find_hierarchies()
    if hierarchies is not None:
        for driver in DRIVERS if not place else (CGROUPFS,):
            cgroups = Cgroups(f"{place}{root_of(data_dir)}", hierarchies, driver=driver)
            if kill:
                cgroups.kill_all()
            cgroups.remove_all()


class Cgroups:
    def __init__(
        self,
        root: str,
        hierarchies: Hierarchies,
        *,
        bounds: PodBounds = NO_BOUNDS,
        driver: str = CGROUPFS,
        runtime_name: str = "containerd",
        room: Limits | None = None,
    ) -> None:
        """`root` is a path inside of every hierarchy: `/name`. `bounds`: of each pod; `room`: of
        all pods together, with every size of huge pages."""
        assert root.startswith("/"), root
        assert driver in DRIVERS, driver
        self.root, self._driver, self._runtime_name = root, driver, runtime_name
        self._given = root.rpartition("/")[0]  # the cgroup below which ours are
        self._hierarchies, self._bounds = hierarchies, bounds
        self._bases = [str(path) for path in hierarchies.all]
        self._burstable: dict[str, int] = {}  # uid → cpu shares, of the pods that are here
        self._made: dict[str, str] = {}  # uid → the folder that we made for it
        self._room = room or Limits()

    def prepare(self) -> None:
        """The folders that pods of one quality share. Raises CgroupFailure."""
        for quality in FOLDERS:
            # Guaranteed pods are directly in the folder of all.
            whole = FOLDERS[quality] == ""
            self._make(self._shared(quality), self._room if whole else Limits())

    def counts_swap(self) -> bool:
        """Can containers be kept from it?"""
        unified = self._hierarchies.unified
        return (
            unified is not None
            and (Path(f"{unified}{self._shared('Guaranteed')}") / "memory.swap.max").exists()
        )

    def ensure(self, pod: Obj, *, has_quota: bool = True) -> str:
        """The pod's folder with its limits; its path. Raises CgroupFailure."""
        path, limits = pod_cgroup(pod, self.root), pod_limits(pod, self._bounds)
        if not has_quota:
            limits = replace(limits, cpu_quota=0)
        # As upstream: who asks for none gets none.
        pages = {**dict.fromkeys(self._room.hugepages, 0), **limits.hugepages}
        limits = replace(limits, hugepages=pages)
        self._made[uid_of(pod)] = path
        self._make(path, limits)
        if qos_class(pod) == "Burstable":
            self._burstable[uid_of(pod)] = limits.cpu_shares
            self._share_among_burstable()
        return path

    def make_room(self, pod: Obj) -> None:
        """Those limits of the pod that grow: containers find the room before they use it. What
        shrinks is left to `ensure`, when they have shrunk. Raises CgroupFailure."""
        path, limits = pod_cgroup(pod, self.root), pod_limits(pod, self._bounds)
        place = folder(path, self._driver)
        wanted = list(self._settings(limits))
        grown = [one for one in wanted if amount_in(one.value) > self._amount(place, one)]
        if self._driver == CGROUPFS:
            self._write(path, grown)
        elif all(amount_in(one.value) >= self._amount(place, one) for one in wanted):
            self._make_slice(path, limits)

    def _amount(self, place: str, setting: Setting) -> float:
        """What the kernel says now."""
        base = self._hierarchies.unified or self._hierarchies.by_controller.get(setting.controller)
        return _amount_in(Path(f"{base}{place}/{setting.file}"))

    def memory_usage(self, uid: str, containers: Iterable[str] = ()) -> MemoryUsage:
        place = self.path_of(uid, "memory")
        if place is None:
            return MemoryUsage(0.0, math.inf, {})
        used = "memory.current" if self.is_v2 else "memory.usage_in_bytes"
        limit = "memory.max" if self.is_v2 else "memory.limit_in_bytes"
        each = {
            id_: _amount_in(place / self.container_folder(id_) / used, absent=0.0)
            for id_ in containers
        }
        return MemoryUsage(_amount_in(place / used, absent=0.0), _amount_in(place / limit), each)

    def counts_pages(self) -> bool:
        """Huge ones; where the kernel does not, nothing is limited, as upstream has it."""
        unified = self._hierarchies.unified
        if unified is None:
            return "hugetlb" in self._hierarchies.by_controller
        controllers = unified / self.root.removeprefix("/") / "cgroup.controllers"
        return controllers.exists() and "hugetlb" in controllers.read_text().split()

    def remove(self, uid: str) -> None:
        """Nothing of the pod is left in any hierarchy. Raises CgroupFailure while it is in use."""
        made = self._made.get(uid)
        # Of a pod of before this start nobody knows its quality.
        everywhere = (f"{self._shared(quality)}/{pod_folder(uid)}" for quality in FOLDERS)
        for path in everywhere if made is None else (made,):
            self._remove(path)
        self._made.pop(uid, None)
        if self._burstable.pop(uid, None) is not None:
            self._share_among_burstable()

    def kill(self, uid: str) -> int:
        """Whatever runs in the pod's folders, at once; how many processes that were."""
        found: set[int] = set()
        for quality in FOLDERS:
            path = folder(f"{self._shared(quality)}/{pod_folder(uid)}", self._driver)
            for hierarchy in self._bases:
                found |= _processes(hierarchy + path)
        _kill(found)
        return len(found)

    def kill_all(self) -> None:
        """Whatever runs below the node's own folder; returns when it is gone, or soon after."""
        place = folder(self.root, self._driver)
        for _ in range(_KILL_ROUNDS):
            found = set[int]().union(*(_processes(base + place) for base in self._bases))
            if not found - {os.getpid()}:
                return
            _kill(found)
            time.sleep(_KILL_POLL_SECONDS)

    def uids(self) -> set[str]:
        """The pods that have a folder."""
        found = {
            uid_in(path.name, self._driver)
            for hierarchy in self._bases
            for quality in FOLDERS
            for path in Path(hierarchy + folder(self._shared(quality), self._driver)).glob("*pod*")
            if path.is_dir()
        }
        return found - {""}

    def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        for uid in self.uids():
            if not is_known(uid):
                try:
                    self.kill(uid)
                    self.remove(uid)
                except CgroupFailure as error:
                    log.warning("a gone pod's cgroup stays", uid=uid, error=error)

    def remove_all(self) -> None:
        """At the end of the node. What still runs keeps its folders."""
        try:
            self._remove(self.root)
        except CgroupFailure as error:
            log.debug("cgroups stay", error=error)

    def path_of(self, uid: str, controller: str) -> Path | None:
        """Where figures of the pod are read."""
        base = self._hierarchies.unified or self._hierarchies.by_controller.get(controller)
        place = "" if base is None else self._place_in(base, uid)
        return Path(f"{base}{place}") if place else None

    def place_of(self, uid: str) -> str:
        """The pod's folder, inside of its hierarchy; empty where it has none."""
        base = self._hierarchies.unified or self._hierarchies.by_controller.get("memory")
        return "" if base is None else self._place_in(base, uid)

    def _place_in(self, base: Path, uid: str) -> str:
        for quality in FOLDERS:
            place = folder(f"{self._shared(quality)}/{pod_folder(uid)}", self._driver)
            if Path(f"{base}{place}").is_dir():
                return place
        return ""

    def container_folder(self, container_id: str) -> str:
        """Of a container, below its pod's."""
        return container_folder(container_id, self._driver, self._runtime_name)

    @property
    def is_v2(self) -> bool:
        return self._hierarchies.unified is not None

    def _share_among_burstable(self) -> None:
        """As upstream: together they get what they asked for, whoever is in the other folders."""
        total = max(sum(self._burstable.values()), Limits().cpu_shares)
        path, shares = self._shared("Burstable"), Limits(cpu_shares=total)
        if self._driver == SYSTEMD:
            _tell(systemd.change(path, shares, v2=self.is_v2))
        else:
            weights = [each for each in self._settings(shares) if each.controller == "cpu"]
            self._write(path, weights)

    def _shared(self, quality: str) -> str:
        return f"{self.root}/kubepods{FOLDERS[quality]}"

    def _settings(self, limits: Limits) -> Iterator[Setting]:
        if self._hierarchies.unified is None:
            return settings_v1(limits)
        # What cannot be limited here is said at the start (cmd/cluster/node/real_node.py).
        offered = offered_controllers(self._given, self._hierarchies.unified) or ()
        return (each for each in settings_v2(limits) if each.controller in offered)

    def _remove(self, path: str) -> None:
        if self._driver == SYSTEMD:
            place = folder(path, self._driver)
            if any(os.path.isdir(hierarchy + place) for hierarchy in self._bases):
                _tell(systemd.stop(path))
            return
        refused: CgroupFailure | None = None
        for hierarchy in self._bases:
            try:
                _remove_tree(f"{hierarchy}{path}")
            except CgroupFailure as error:
                refused = error  # the others go all the same
        if refused is not None:
            raise refused

    def _make(self, path: str, limits: Limits) -> None:
        if limits.hugepages and not self.counts_pages():
            limits = replace(limits, hugepages={})
        if self._driver == SYSTEMD:
            self._make_slice(path, limits)
            return
        try:
            if self._hierarchies.unified is not None:
                _make_unified(self._hierarchies.unified, self._given, path)
            else:
                for controller in ("cpu", "memory", "pids", "hugetlb"):
                    base = self._hierarchies.by_controller.get(controller)
                    if base is not None:
                        _make_folder(f"{base}{path}")
        except OSError as error:
            raise CgroupFailure(f"failed to create cgroup {path}: {error}") from error
        self._write(path, list(self._settings(limits)))

    def _make_slice(self, path: str, limits: Limits) -> None:
        place = folder(path, self._driver)
        if any(os.path.isdir(hierarchy + place) for hierarchy in self._bases):
            _tell(systemd.change(path, limits, v2=self.is_v2))
        else:
            _tell(systemd.start(path, limits, v2=self.is_v2))
        pages = [setting for setting in self._settings(limits) if setting.controller == "hugetlb"]
        self._write(place, pages)

    def _write(self, path: str, settings: list[Setting]) -> None:
        for setting in settings:
            base = self._hierarchies.unified or self._hierarchies.by_controller.get(
                setting.controller
            )
            if base is None:
                raise CgroupFailure(f"this kernel has no cgroup controller {setting.controller}")
            try:
                _write(f"{base}{path}/{setting.file}", setting.value)
            except OSError as error:
                what = f"{setting.file} of cgroup {path} to {setting.value}"
                raise CgroupFailure(f"failed to set {what}: {error}") from error


def _amount_in(file: Path, absent: float = math.inf) -> float:
    try:
        return amount_in(file.read_text())
    except OSError:
        return absent


def _tell(command: list[str]) -> None:
    try:
        systemd.run_systemctl(command)
    except systemd.SystemdFailure as error:
        raise CgroupFailure(str(error)) from error


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)


def _make_unified(base: Path, given: str, path: str) -> None:
    """Every folder on the way gives its controllers to the next one; those above `given` are not
    ours."""
    here = Path(f"{base}{given}")
    for part in path.removeprefix(given).strip("/").split("/"):
        enabled = (here / "cgroup.subtree_control").read_text().split()
        offered = (here / "cgroup.controllers").read_text().split()
        missing = [
            controller
            for controller in CONTROLLERS
            if controller in offered and controller not in enabled
        ]
        if missing:
            wanted = " ".join(f"+{item}" for item in missing)
            (here / "cgroup.subtree_control").write_text(wanted)
        here = here / part
        here.mkdir(exist_ok=True)


def _write(path: str, value: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def _kill(pids: set[int]) -> None:
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes(path: str) -> set[int]:
    """In the folder and in those below it."""
    found: set[int] = set()
    for place, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            listed = Path(place, "cgroup.procs").read_text().split()
            found |= {int(pid) for pid in listed}
    return found


def _remove_tree(path: str) -> None:
    """Folders only: their files are the kernel's."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        with os.scandir(path) as items:
            children = [item.path for item in items if item.is_dir(follow_symlinks=False)]
        if not children:
            why = "in use" if error.errno == errno.EBUSY else str(error)
            raise CgroupFailure(f"cgroup {path} cannot be removed: {why}") from error
        for child in children:
            _remove_tree(child)
        _remove_tree(path)
