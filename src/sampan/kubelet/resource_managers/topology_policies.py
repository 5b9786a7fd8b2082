"""Topology manager: one NUMA affinity out of what all providers of resources hint at. Pure.

Job: merge hints by a policy (none, best-effort, restricted, single-numa-node) → the best, and
    whether a container may be admitted with it.
Invariant: the cost is bounded by the sets of NUMA nodes, not by the combinations of hints: what
    leads to the same set is folded before it is combined further.
"""

from collections.abc import Iterable, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.numa import Hint, Hints, Mask, NumaNodes, count

NONE, BEST_EFFORT, RESTRICTED = "none", "best-effort", "restricted"
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = (NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)
CONTAINER, POD = "container", "pod"
MOST_NUMA_NODES = 8  # as upstream: with more of them hints are too many to be combined

_ANY, _NONE_POSSIBLE = Hint(None, True), Hint(None, False)


@dataclass(frozen=True, slots=True)
class TopologySettings:
    policy: str = NONE
    scope: str = CONTAINER
    prefer_closest: bool = False
    most_numa_nodes: int = MOST_NUMA_NODES


def merged(
    providers: Iterable[Hints], numa: NumaNodes, settings: TopologySettings
) -> tuple[Hint, bool]:
    """The best affinity, and whether the policy admits it."""
    if settings.policy == NONE:
        return _ANY, True
    resources = _all_hints(providers)
    if settings.policy == SINGLE_NUMA_NODE:
        resources = [[hint for hint in hints if _is_single(hint)] for hints in resources]
    best = _best(resources, numa, settings)
    if settings.policy == SINGLE_NUMA_NODE and best.mask == numa.everything:
        best = Hint(None, best.preferred)
    return best, settings.policy == BEST_EFFORT or best.preferred


def _is_single(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or count(hint.mask) == 1)


def _all_hints(providers: Iterable[Hints]) -> list[list[Hint]]:
    found: list[list[Hint]] = []
    for hints in providers:
        if not hints:
            found.append([_ANY])
        for of_resource in hints.values():
            if of_resource is None:
                found.append([_ANY])
            else:
                found.append(list(of_resource) or [_NONE_POSSIBLE])
    return found


def _best(resources: Sequence[Sequence[Hint]], numa: NumaNodes, settings: TopologySettings) -> Hint:
    closest = settings.prefer_closest and settings.policy != SINGLE_NUMA_NODE

    def narrow(mask: Mask) -> tuple[float, ...]:
        return count(mask), numa.distance(mask) if closest else 0.0, mask

    agreed = _agreed(resources, numa)
    if agreed:
        return Hint(min(agreed, key=narrow), True)
    # As upstream: among those that not everybody prefers, one that is as wide as the resource that
    # needs most nodes, else the next narrower one, else the next wider one.
    wanted = max((_narrowest(hints) for hints in resources), default=0)

    def fitting(mask: Mask) -> tuple[float, ...]:
        size = count(mask)
        how = (0, 0) if size == wanted else (1, -size) if size < wanted else (2, size)
        return (*how, *narrow(mask))

    return Hint(min(_common(resources, numa), key=fitting, default=numa.everything), False)


def _agreed(resources: Sequence[Sequence[Hint]], numa: NumaNodes) -> set[Mask]:
    """The sets of nodes that each of them prefers; who does not mind prefers any."""
    agreed: set[Mask | None] = {None}  # None: nobody so far minds
    for hints in resources:
        preferred = {hint.mask for hint in hints if hint.preferred}
        named = agreed - {None}
        following = named if None in preferred else named & preferred
        agreed = following | preferred if None in agreed else following
    return {numa.everything if mask is None else mask & numa.everything for mask in agreed} - {0}


def _common(resources: Sequence[Sequence[Hint]], numa: NumaNodes) -> set[Mask]:
    """What is left of the machine's nodes with one hint of each, however they are combined."""
    found = {numa.everything}
    for hints in resources:
        masks = {numa.everything if hint.mask is None else hint.mask for hint in hints}
        found = {mask & other for mask in found for other in masks}
    return found - {0}


def _narrowest(hints: Sequence[Hint]) -> int:
    return min((count(hint.mask) for hint in hints if hint.mask is not None), default=0)
