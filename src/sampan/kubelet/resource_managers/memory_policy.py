"""Memory manager's Static policy: which NUMA nodes a Guaranteed container's memory is of. Pure.

Job: what a container asks for and what is left where → blocks of memory, topology hints.
Invariant: no more is promised of a NUMA node than it has.
Invariant: NUMA nodes that serve a container together serve no container alone, nor in another
    company.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sampan.api.objects import Obj, uid_of
from sampan.api.quantity import value_of
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.resource_managers.memory_state import (
    Block,
    Blocks,
    MemoryState,
    NodeMemory,
    Nodes,
    assign,
    release,
)
from sampan.kubelet.resource_managers.numa import (
    Hint,
    Hints,
    Mask,
    bits_of,
    count,
    mask_of,
    masks_of,
)
from sampan.kubelet.resource_managers.pod_level_requests import has_pod_level_requests, most_at_once

MEMORY, HUGEPAGES = "memory", "hugepages-"


class NotEnoughMemory(Exception):
    """In upstream's words."""


# What init containers of the pod that is being admitted leave to those after them: by the NUMA
# nodes together, then by resource.
Reusable = Mapping[Mask, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class MemoryGiven:
    state: MemoryState
    reusable: Reusable


def takes_part(pod: Obj) -> bool:
    return qos_class(pod) == "Guaranteed" and not has_pod_level_requests(pod)


def asked(container: Obj) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {
        name: value_of(amount).value()
        for name, amount in requests.items()
        if name == MEMORY or name.startswith(HUGEPAGES)
    }


def asked_at_once(pod: Obj) -> dict[str, int]:
    """As upstream: of what the containers that stay ask for."""
    names = {name for container in containers(pod) for name in asked(container)}
    return {name: most_at_once(pod, partial(_asked_of, name)) for name in names}


def _asked_of(name: str, container: Obj) -> int:
    return asked(container).get(name, 0)


# Hints.


def container_hints(state: MemoryState, pod: Obj, container: Obj, reusable: Reusable) -> Hints:
    if not takes_part(pod):
        return {}
    wanted = asked(container)
    held = state.of(uid_of(pod), container["name"])
    return _again(held, wanted) if held else hints(state.nodes, wanted, reusable)


def pod_hints(state: MemoryState, pod: Obj, reusable: Reusable) -> Hints:
    if not takes_part(pod):
        return {}
    wanted = asked_at_once(pod)
    for container in (*init_containers(pod), *containers(pod)):
        held = state.of(uid_of(pod), container["name"])
        if held:
            return _again(held, wanted)
    return hints(state.nodes, wanted, reusable)


def _again(held: Blocks, wanted: Mapping[str, int]) -> Hints:
    """For what it has already; nothing where that is not what it asks for by now."""
    if {block.resource: block.size for block in held} != wanted:
        return {}
    return {block.resource: [Hint(mask_of(block.nodes), True)] for block in held}


def hints(nodes: Nodes, wanted: Mapping[str, int], reusable: Reusable) -> dict[str, list[Hint]]:
    """Of each resource the same; none at all where it cannot be had."""
    narrowest, possible = len(nodes), []
    for mask in masks_of(sorted(nodes)):
        some = bits_of(mask)
        if any(_total(nodes, some, name, "allocatable") < size for name, size in wanted.items()):
            continue
        narrowest = min(narrowest, len(some))
        if _may_serve(nodes, some) and _has_room(nodes, mask, wanted, reusable):
            possible.append(mask)
    if not possible:
        return {}
    found = [Hint(mask, count(mask) == narrowest) for mask in possible]
    return dict.fromkeys(wanted, found)


def _total(nodes: Nodes, some: Iterable[int], resource: str, what: str) -> int:
    tables = (nodes[node].tables.get(resource) for node in some)
    return sum(getattr(table, what) for table in tables if table is not None)


def _may_serve(nodes: Nodes, some: Sequence[int]) -> bool:
    """Alone, or with those only that it serves with already."""
    if len(some) == 1:
        return len(nodes[some[0]].cells) <= 1
    return all(_is_free_for(nodes[node], some) for node in some)


def _is_free_for(node: NodeMemory, some: Sequence[int]) -> bool:
    return not node.assignments or (len(node.cells) > 1 and sorted(node.cells) == list(some))


def _has_room(nodes: Nodes, mask: Mask, wanted: Mapping[str, int], reusable: Reusable) -> bool:
    more = reusable.get(mask, {})
    return all(
        _total(nodes, bits_of(mask), name, "free") + more.get(name, 0) >= size
        for name, size in wanted.items()
    )


# Allocation.


def allocated(
    state: MemoryState, pod: Obj, container: Obj, affinity: Hint, reusable: Reusable
) -> MemoryGiven:
    """Raises NotEnoughMemory."""
    uid, name = uid_of(pod), container["name"]
    held = state.of(uid, name)
    if held:
        return MemoryGiven(state, _reusable_after(pod, container, held, reusable))
    wanted = asked(container)
    best = _settled(state.nodes, wanted, affinity, reusable)
    some = tuple(bits_of(best.mask or 0))
    if len(some) > 1 and not all(_is_free_for(state.nodes[node], some) for node in some):
        raise NotEnoughMemory("[memorymanager] preferred hint violates NUMA node allocation")
    nodes, blocks = state.nodes, []
    for resource, size in wanted.items():
        blocks.append(Block(some, resource, size))
        left = max(0, size - reusable.get(mask_of(some), {}).get(resource, 0))
        nodes = assign(nodes, some, resource, left)
    given = state.with_blocks(uid, name, tuple(blocks), nodes)
    return MemoryGiven(
        _without_double(given, pod, container, blocks),
        _reusable_after(pod, container, blocks, reusable),
    )


def _settled(nodes: Nodes, wanted: Mapping[str, int], affinity: Hint, reusable: Reusable) -> Hint:
    """What the topology manager says, or as close to it as there is room."""
    best = affinity
    if affinity.mask is None:
        found = hints(nodes, wanted, reusable)
        if not found:
            raise NotEnoughMemory(
                "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with "
                "enough memory is available"
            )
        best = _best(found.get(MEMORY, ()))
        if not best.preferred and affinity.preferred:
            raise NotEnoughMemory("[memorymanager] failed to find the default preferred hint")
    if _has_room(nodes, best.mask or 0, wanted, {}):
        return best
    wider = [
        hint
        for hint in hints(nodes, wanted, reusable).get(MEMORY, ())
        if hint.mask is not None and not (best.mask or 0) & ~hint.mask
    ]
    if not wider:
        raise NotEnoughMemory(
            "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
        )
    extended = _best(wider)
    if not extended.preferred and best.preferred:
        raise NotEnoughMemory("[memorymanager] failed to find the extended preferred hint")
    return extended


def _best(found: Sequence[Hint]) -> Hint:
    """As upstream: preferred ones first, then narrow ones, then those of lower nodes."""
    return min(
        found,
        key=lambda hint: (not hint.preferred, count(hint.mask or 0), hint.mask),
        default=Hint(None, False),
    )


def _is_beginning(pod: Obj, container: Obj) -> bool:
    name = container["name"]
    return any(item["name"] == name and not is_sidecar(item) for item in init_containers(pod))


def _reusable_after(
    pod: Obj, container: Obj, blocks: Iterable[Block], reusable: Reusable
) -> Reusable:
    """What an init container has, those after it may have: the largest of them, less what they
    took."""
    found = {mask: dict(amounts) for mask, amounts in reusable.items()}
    begins = _is_beginning(pod, container)
    for block in blocks:
        amounts = found.setdefault(mask_of(block.nodes), {})
        before = amounts.get(block.resource, 0)
        if begins:
            amounts[block.resource] = max(before, block.size)
        elif before:
            amounts[block.resource] = max(0, before - block.size)
    return found


def _without_double(
    state: MemoryState, pod: Obj, container: Obj, blocks: Iterable[Block]
) -> MemoryState:
    """What a container took over from init containers before it is not theirs any more."""
    uid = uid_of(pod)
    for block in blocks:
        left = block.size
        for earlier in init_containers(pod):
            if earlier["name"] == container["name"] or not left:
                break
            if is_sidecar(earlier):
                continue
            changed = []
            for theirs in state.of(uid, earlier["name"]):
                taken = 0
                if theirs.resource == block.resource and set(theirs.nodes) == set(block.nodes):
                    taken = min(left, theirs.size)
                left -= taken
                changed.append(Block(theirs.nodes, theirs.resource, theirs.size - taken))
            if changed:
                state = state.with_blocks(uid, earlier["name"], tuple(changed), state.nodes)
    return state


def without_container(state: MemoryState, uid: str, container: str) -> MemoryState:
    nodes = state.nodes
    for block in state.of(uid, container):
        nodes = release(nodes, block)
    return state.without_blocks(uid, container, nodes)


def without_pod(state: MemoryState, uid: str) -> MemoryState:
    for container in list(state.blocks.get(uid, {})):
        state = without_container(state, uid, container)
    return state
