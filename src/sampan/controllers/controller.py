"""What a controller is: which changes wake which keys, and what is planned for a key.

Job: the value that every controller file makes and that the runner runs.
Invariant: a controller reads through View and writes through its plan, in no other way.
"""

import random
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from sampan.api.objects import Obj, key_of
from sampan.api.resources import Resource
from sampan.api.rules.tally import TallyFunction
from sampan.client.contract import Client
from sampan.client.indexer import Cache, IndexFunction
from sampan.controllers.actions import Outcome, Plan
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics

Key = Any  # hashable; each controller has its own kind of key
Caches = Callable[[Resource], Cache]


# Of one plan: what became of its actions, and how many seconds it all took. What was not written is
# not counted.
Note = Callable[[Sequence[Outcome], float], None]
# What there is before the plan is made is looked at first.
Counting = Callable[[Caches, Key], Note | None]


@dataclass(frozen=True, slots=True)
class Later:
    """A key that a change concerns, though not before so long: more changes are about to come."""

    key: Key
    seconds: float


# (caches, old, new) → the keys that this change concerns. Quick, and never waits.
Wake = Callable[[Caches, Obj | None, Obj | None], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class View:
    """What a controller sees when it plans."""

    cache: Caches
    client: Client  # to read what the caches cannot tell; never to write
    now: float
    rng: random.Random
    # Whether the cache of a kind is whole: what the controller can do without may be refused.
    is_synced: Callable[[Resource], bool] = lambda _resource: True


@dataclass(frozen=True, slots=True)
class Controller:
    """For one runner: some controllers keep what they have seen."""

    name: str  # as in upstream's --controllers
    component: str  # the source of its events
    wakes: Mapping[Resource, Wake]
    planned: Callable[[View, Key], Awaitable[Plan]]
    indices: Mapping[Resource, Mapping[str, IndexFunction]] = field(default_factory=dict)
    # What is counted as it changes, by name: a plan need not look at every object for it.
    tallies: Mapping[Resource, Mapping[str, TallyFunction]] = field(default_factory=dict)
    # Objects that bring further kinds along: while such an object says so, those wake us, too.
    brings: Mapping[Resource, Callable[[Obj], Mapping[Resource, Wake]]] = field(
        default_factory=dict
    )
    # Kinds that it works without where the server refuses or lacks them. It waits for all others.
    optional: Collection[Resource] = ()
    at_start: tuple[Key, ...] = ()  # what it looks at before anything has changed
    aliases: tuple[str, ...] = ()
    is_named_only: bool = False  # `*` does not mean it
    counted: Callable[[Metrics], Counting] | None = None  # what it counts of its own
    workers: int = 5


class UnknownController(ValueError):
    """--controllers names one that does not exist."""


def selected_controllers(
    controllers: Iterable[Controller], names: Iterable[str], unoffered: Iterable[str] = ()
) -> list[Controller]:
    """As upstream: `*` is all that are on by default, `foo` one of them, `-foo` not that one, `-*`
    none but those that are named. `unoffered`: names that are known, though they cannot be had
    here."""
    offered, wanted = list(controllers), list(names)
    known = {name for item in offered for name in (item.name, *item.aliases)} | set(unoffered)
    for name in wanted:
        if name not in ("*", "-*") and name.removeprefix("-") not in known:
            raise UnknownController(f'"{name}" is not in the list of known controllers')
    return [item for item in offered if _is_wanted(item, wanted)]


def _is_wanted(controller: Controller, wanted: list[str]) -> bool:
    own = (controller.name, *controller.aliases)
    for name in wanted:
        if name in own:
            return True
        if name.removeprefix("-") in own:
            return False
    return "*" in wanted and "-*" not in wanted and not controller.is_named_only


def own_key(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Wake for the controller's own kind: the object's key."""
    obj = new if new is not None else old
    return () if obj is None else (key_of(obj),)
