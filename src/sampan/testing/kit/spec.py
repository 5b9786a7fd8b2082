"""What a test can choose about its cluster.

Job: hold the choices, check them, and turn them into text and back for other processes.
Invariant: a choice that means nothing is refused with one sentence.
"""

from pathlib import Path
from typing import Any, Literal

from sampan.core.fast_dataclass import dataclass

StoreChoice = Literal["memory", "sqlite"]
ClockChoice = Literal["real", "virtual"]
RuntimeChoice = Literal["", "cri", "native"]
MOST_NODES = 5000
Read = tuple[tuple[int, int, int], ...]  # which file each is, when it was written, its size


class CannotStart(Exception):
    """One sentence: why there is no cluster."""


@dataclass(frozen=True, slots=True)
class Spec:
    nodes: int = 1
    controllers: str = "*"  # as `sampan up --controllers`
    scheduler: bool = True
    store: StoreChoice = "memory"
    clock: ClockChoice = "real"
    scheduler_config: str = ""  # a KubeSchedulerConfiguration; plugins beside it are found
    nodes_file: str = ""  # types of nodes, instead of a number of them (docs/lab.md)
    real: bool = False  # the node is this machine, with real containers
    runtime: RuntimeChoice = ""  # of a real node; empty: as `sampan up` chooses
    version: str = ""  # of Kubernetes: 1.36; empty: the default
    feature_gates: str = ""  # A=true,B=false
    runtime_config: str = ""  # group/version=true
    stages: str = ""  # a file of KWOK's Stages, as `sampan up --stages`
    ingress: bool = False  # IngressClass sampan, as `sampan up --ingress`
    snapshot: str = ""  # a file: the cluster begins with its objects, and with nodes of their names

    @property
    def virtual(self) -> bool:
        return self.clock == "virtual"

    @property
    def controller_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.controllers.split(",") if name.strip())

    def as_dict(self) -> dict[str, Any]:
        """What `spec_of` reads."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) != ""}


FIELDS = (
    "nodes", "controllers", "scheduler", "store", "clock", "scheduler_config", "nodes_file",
    "snapshot", "real", "runtime", "version", "feature_gates", "runtime_config", "ingress",
    "stages",
)  # fmt: skip
FILES = ("snapshot", "scheduler_config", "nodes_file", "stages")
_PAIRS = ("feature_gates", "runtime_config")
_CHOICES = {"store": ("memory", "sqlite"), "clock": ("real", "virtual"),
            "runtime": ("cri", "native")}  # fmt: skip


def spec_of(chosen: dict[str, Any]) -> Spec:
    """Raises CannotStart."""
    for name, value in chosen.items():
        if name not in FIELDS:
            raise CannotStart(f"a cluster has no {name!r}: there are {', '.join(FIELDS)}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise CannotStart(f"{name}={value!r}: it is one of {', '.join(_CHOICES[name])}")
    files = {name: str(Path(chosen[name]).absolute()) for name in FILES if chosen.get(name)}
    pairs = {name: _pairs(name, chosen[name]) for name in _PAIRS if name in chosen}
    chosen = {**chosen, **files, **pairs}
    spec = Spec(**chosen)
    _check_types(spec)
    for name, path in files.items():
        if not Path(path).is_file():
            raise CannotStart(f"there is no {name} {path}")
    if spec.store == "sqlite" and spec.virtual:
        raise CannotStart("store='sqlite' has a thread of its own: no virtual clock beside it")
    _check_real(spec)
    return spec


def files_of(spec: Spec) -> Read:
    """As they are now: who has read them before knows whether they are others. Raises
    CannotStart."""
    found = []
    for path in (getattr(spec, name) for name in FILES if getattr(spec, name)):
        try:
            status = Path(path).stat()
        except OSError as error:
            raise CannotStart(f"there is no {path}") from error
        found.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _check_types(spec: Spec) -> None:
    """Raises CannotStart."""
    if not isinstance(spec.version, str):
        raise CannotStart(f"version={spec.version!r}: a text such as '1.36'")
    if type(spec.nodes) is not int or not 0 <= spec.nodes <= MOST_NODES:
        raise CannotStart(f"nodes={spec.nodes!r}: a number from 0 to {MOST_NODES}")
    if not isinstance(spec.controllers, str):
        raise CannotStart(f"controllers={spec.controllers!r}: a text such as '*,-job'")
    for name in ("scheduler", "ingress"):
        if type(getattr(spec, name)) is not bool:
            raise CannotStart(f"{name}={getattr(spec, name)!r}: True or False")


def _pairs(name: str, given: object) -> str:
    """As the flags have it. Raises CannotStart."""
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and all(isinstance(key, str) for key in given):
        return ",".join(f"{key}={str(value).lower()}" for key, value in given.items())
    raise CannotStart(f"{name}={given!r}: a text such as 'A=true,B=false', or such a dict")


def _check_real(spec: Spec) -> None:
    """Raises CannotStart."""
    if type(spec.real) is not bool:
        raise CannotStart(f"real={spec.real!r}: True or False")
    if not spec.real:
        if spec.runtime:
            raise CannotStart(f"runtime={spec.runtime!r} is for real=True")
        return
    if spec.virtual:
        raise CannotStart("real=True: containers run in real time, no virtual clock beside them")
    if spec.nodes != 1 or spec.nodes_file or spec.snapshot:
        raise CannotStart(
            "real=True: its one node is this machine; nodes, nodes_file and snapshot are for "
            "simulated ones"
        )
