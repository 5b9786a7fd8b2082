"""Which runtime a real node's containers run on, and what it needs of the machine.

Job: settings, what the cluster ran on before and what this machine has → crun and conmon, or
    containerd; or what is missing.
Invariant: a cluster stays on the runtime that it has images and containers of, unless a flag says
    otherwise.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.machine import OLDEST_KERNEL, is_new_enough, missing_rights
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import RuntimeChoice, UpSettings

# Where each keeps its things, below a data directory.
_HOMES = {"cri": "containerd", "native": "native"}


def chosen_runtime(settings: UpSettings, data: DataDir) -> RuntimeChoice:
    """What `auto` comes to; anything else is as it is. Raises CannotStart."""
    runtime, before = settings.runtime, runtime_before(data)
    if runtime == "auto":
        runtime = "cri" if settings.cri_socket else _found_runtime(settings, before)
    if before and before != runtime:
        _refuse_to_leave_containers(data, before)
    return runtime


def _found_runtime(settings: UpSettings, before: str) -> RuntimeChoice:
    """The first that works here; where none does, the one whose programs are asked for."""
    order: tuple[RuntimeChoice, ...] = ("native", "cri")
    if before == "cri" or (before != "native" and not _has_crun()):
        order = ("cri", "native")
    for runtime in order:
        # Where it ran before, nobody has to see it work.
        tried = runtime != before
        if not what_a_node_misses(replace(settings, runtime=runtime), tried=tried):
            return runtime
    return "cri" if before == "cri" else "native"


def _has_crun() -> bool:
    """With runc, containerd comes before it: that is how runc is mostly used."""
    return shutil.which("crun", path=_completed_search_path()) is not None


def _completed_search_path() -> str:
    from sampan.runtime.programs import system_path

    os.environ["PATH"] = system_path(os.environ)
    return os.environ["PATH"]


def runtime_before(data: DataDir) -> str:
    """What this cluster's containers ran on at its last start; "" where there was none."""
    if recorded := str(data.record().get("runtime", "")):
        return recorded
    # An earlier version did not write it down.
    return next((name for name, home in _HOMES.items() if (data.root / home).is_dir()), "")


def _refuse_to_leave_containers(data: DataDir, before: str) -> None:
    """Of a cluster that was killed, or stopped with --keep-pods: nobody would see to them, and
    pods would run twice. Raises CannotStart."""
    if any(_monitors(data.root, before)):
        raise CannotStart(
            f"containers of this cluster still run, with --runtime {before}: start it once more "
            f"with that and stop it (`sampan down`), or remove it (`sampan reset`)"
        )


def _monitors(root: Path, runtime: str) -> Iterable[int]:
    """The processes that wait for containers' ends."""
    if runtime == "cri":
        from sampan.kubelet.containerd.config import layout
        from sampan.kubelet.containerd.reset import shims

        return shims(layout(root))
    from sampan.runtime.stale_processes import monitors_below

    return monitors_below(root / _HOMES[runtime])


def what_a_node_misses(settings: UpSettings, *, tried: bool = False) -> list[str]:
    """Of what a real one needs, with the runtime that was chosen. `tried`: programs that do not
    work are missing, too."""
    if sys.platform != "linux":
        return ["Linux"]
    if not is_new_enough(platform.release()):
        return [f"a kernel of {OLDEST_KERNEL} or newer (this is {platform.release()})"]
    if settings.runtime == "native":
        return [*_missing_rights_for_native(), *_missing_programs(settings, tried=tried)]
    from sampan.kubelet.containerd.config import missing_programs

    path, able = _completed_search_path(), _has_interfaces(settings)
    missing = [*missing_programs(path), *missing_for_network(path, interfaces=able)]
    return [*missing_rights(), *missing]


def may_be_rootless(settings: UpSettings) -> bool:
    """Real containers are wanted, we are not root, and there is what it takes without."""
    if sys.platform != "linux" or os.geteuid() == 0 or settings.clock == "virtual":
        return False
    if settings.runtime not in ("auto", "native") or settings.cri_socket:
        return False
    if settings.network == "none" or settings.cni == "reference" or settings.processes:
        return False
    from sampan.cmd.rootless import rootless

    tried = settings.runtime == "auto"
    return not rootless.what_is_missing() and not _missing_programs(settings, tried=tried)


def _missing_rights_for_native() -> list[str]:
    if os.geteuid() == 0:
        return missing_rights()
    from sampan.cmd.rootless import rootless

    return rootless.what_is_missing() or ["root"]


def _missing_programs(settings: UpSettings, *, tried: bool) -> list[str]:
    from sampan.cmd.cluster.node import native

    path, able = _completed_search_path(), _has_interfaces(settings)
    missing = native.missing_programs(path, tried=tried)
    return [*missing, *missing_for_network(path, interfaces=able)]


def missing_for_network(path: str, *, interfaces: bool) -> list[str]:
    """Whatever runs the containers. `interfaces`: somebody can make those of pods."""
    missing = []
    if shutil.which("nft", path=path) is None:
        missing.append("nft (apt package nftables)")
    if not interfaces:
        missing.append("CNI plugins (apt package containernetworking-plugins)")
    return missing


def _has_interfaces(settings: UpSettings) -> bool:
    """Can pods' interfaces be made, or are they left to the user's plugins?"""
    from sampan.network import cni

    return settings.network == "none" or cni.makes_interfaces(reference=settings.cni == "reference")
