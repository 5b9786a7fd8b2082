"""Which requests of clients meet which fault. Pure.

Job: a seed and what was chosen → for each request a fault, or none.
Invariant: the nth request of a client with one verb and path meets the same fault each time,
    whatever others do in between: a failing seed replays.
"""

import random
from typing import Any

from sampan.core.fast_dataclass import dataclass

WRITES = ("create", "update", "patch", "delete", "deletecollection")
READS = ("get", "list")
# The verbs that a fault can happen to.
FAULTS = {
    "conflict": ("update", "patch", "delete"),  # 409: somebody was faster
    "throttled": (*READS, *WRITES),  # 429 with Retry-After
    "error": (*READS, "watch", *WRITES),  # 500
    "lost": WRITES,  # it is done, and the connection breaks before the answer is whole
    "slow": (*READS, *WRITES),  # up to a second later
    "expired": ("list", "watch"),  # 410, where a resourceVersion was given
    "dropped": ("watch",),  # the watch ends after a few events
    "late": ("watch",),  # each event up to two seconds late
    "duplicated": ("watch",),  # each event comes twice
    "hanging": ("webhook",),  # it does not answer in its time
}
VERBS = (*READS, "watch", *WRITES, "webhook")
_METHODS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class FaultChoices:
    seed: int
    rate: float = 0.2  # of the requests that can meet one
    kinds: tuple[str, ...] = tuple(FAULTS)
    verbs: tuple[str, ...] = VERBS
    resources: tuple[str, ...] = ()  # plurals; empty: all
    client: str = ""  # a part of the User-Agent; empty: any


@dataclass(frozen=True, slots=True)
class Asked:
    verb: str
    resource: str  # its plural; empty: no resource
    path: str
    client: str
    has_revision: bool = False


def choices_of(chosen: dict[str, Any]) -> FaultChoices:
    """Raises ValueError with one sentence."""
    words: dict[str, Any] = {
        key: tuple(item) if isinstance(item, list) else item for key, item in chosen.items()
    }
    unknown = [*({*words} - set(FaultChoices.__dataclass_fields__))]
    if unknown:
        raise ValueError(f"faults have no {unknown[0]!r}")
    found = FaultChoices(**words)
    lists: tuple[tuple[str, Any, Any], ...] = (
        ("kinds", FAULTS, found.kinds),
        ("verbs", VERBS, found.verbs),
    )
    for name, known, given in lists:
        if isinstance(given, str) or not {*given} <= {*known}:
            raise ValueError(f"{name}={given!r}: some of {', '.join(known)}")
    if not 0 <= found.rate <= 1:
        raise ValueError(f"rate={found.rate!r}: between 0 and 1")
    return found


def asked_of(method: str, path: str, query: str, client: str) -> Asked:
    parts = [part for part in path.split("/") if part]
    inner = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    if inner[:1] == ["namespaces"] and len(inner) > 2:
        inner = inner[2:]
    verb = _METHODS.get(method, "get" if len(inner) > 1 else "list")
    if "watch=true" in query or "watch=1" in query:
        verb = "watch"
    if verb == "delete" and len(inner) == 1:
        verb = "deletecollection"
    revision = "resourceVersion=" in query and "resourceVersion=&" not in f"{query}&"
    return Asked(verb, inner[0] if inner else "", path, client, revision)


def fault_for(chosen: FaultChoices, asked: Asked, count: int) -> tuple[str, random.Random]:
    """The fault of the `count`th such request (empty: none), and what else of it is by chance."""
    rng = random.Random(f"{chosen.seed}/{asked.client}/{asked.verb}/{asked.path}/{count}")
    possible = [
        kind
        for kind in chosen.kinds
        if asked.verb in FAULTS[kind] and (kind != "expired" or asked.has_revision)
    ]
    concerns = (
        asked.resource
        and asked.verb in chosen.verbs
        and (not chosen.resources or asked.resource in chosen.resources)
        and chosen.client in asked.client
    )
    if not concerns or not possible or rng.random() >= chosen.rate:
        return "", rng
    return rng.choice(possible), rng
