"""Which plugins have a socket, and which of them are registered. Pure.

Job: what was found in plugins_registry and what is registered → whom to register, whom to let go.
Invariant: a socket that was made anew is another plugin: the old one goes before it comes.
"""

from collections.abc import Collection, Mapping

from sampan.core.fast_dataclass import dataclass

# Of a socket's file: a new one at the same place differs.
Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One that has introduced itself."""

    socket: str  # where it registers
    stamp: Stamp
    type: str
    name: str
    endpoint: str  # where it serves
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deregister:
    plugin: Plugin


@dataclass(frozen=True, slots=True)
class Register:
    socket: str
    stamp: Stamp


Step = Deregister | Register


def next_steps(
    found: Mapping[str, Stamp],
    registered: Mapping[str, Plugin],
    busy: Collection[str],
    held_back: Mapping[str, Stamp],
) -> list[Step]:
    """By the sockets' paths. `busy`: something is done about them already. `held_back`: they
    failed, and it is not time yet to try again; one that was made anew is tried at once."""
    gone: list[Step] = [
        Deregister(plugin)
        for path, plugin in registered.items()
        if found.get(path) != plugin.stamp and path not in busy
    ]
    come = [
        Register(path, stamp)
        for path, stamp in found.items()
        if path not in registered and path not in busy and held_back.get(path) != stamp
    ]
    return gone + come
