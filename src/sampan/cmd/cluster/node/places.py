"""Where the real nodes of one machine are: directories, numbers and namespaces of the others.

Job: names and numbers → places; make and release the namespace of one.
Invariant: a node keeps its number, from which its address follows.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

from sampan.cmd.cluster.nodes import NODES_DIRECTORY
from sampan.core.digits import is_digits

NAMESPACES = "namespaces"
NET = "net"
NUMBER = "number"  # of a node among them: its address follows from it


def directory_of(root: Path, name: str) -> Path:
    return root / NODES_DIRECTORY / name


def other_nodes(root: Path) -> list[Path]:
    """The directories of those that an earlier start made, too."""
    found = root / NODES_DIRECTORY
    return sorted(found.iterdir()) if found.is_dir() else []


def namespace_of(directory: Path) -> Path:
    return directory / NAMESPACES / NET


def names_of(first: str, count: int, given: Sequence[str]) -> tuple[str, ...]:
    """The first is the machine itself."""
    if given:
        return tuple(given)
    return (first, *(f"{first}-{number}" for number in range(2, count + 1)))


def number_of(root: Path, name: str) -> int:
    """That which it has had, or one that nobody has."""
    taken = {}
    for directory in other_nodes(root):
        text = (directory / NUMBER).read_text() if (directory / NUMBER).exists() else ""
        if is_digits(text):
            taken[directory.name] = int(text)
    if name in taken:
        return taken[name]
    return next(number for number in itertools.count(2) if number not in taken.values())


def make_namespace(directory: Path) -> None:
    """Of a node, unless there is one. The thread is in it afterwards. Blocking; raises OSError."""
    from sampan.kubelet.native.namespaces import is_held, make_namespaces

    place = namespace_of(directory).parent
    place.mkdir(parents=True, exist_ok=True)
    if not is_held(place / NET):
        make_namespaces(place, (NET,), "", {})


def release_namespace(directory: Path) -> None:
    """It goes, and all that is in it, when the last process there does."""
    from sampan.kubelet.native.namespaces import release_namespaces

    release_namespaces(namespace_of(directory).parent)
