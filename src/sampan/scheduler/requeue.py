"""Which event may help which refused pod. Pure.

Job: an event, a refused pod and the rules that refused it → is another attempt worth it?
Invariant: an event after which the pod could be scheduled is never answered with no.
"""

from dataclasses import dataclass

from sampan.scheduler.decide import UNSUPPORTED
from sampan.scheduler.filters.node_affinity import NODE_AFFINITY
from sampan.scheduler.filters.node_name import NODE_NAME
from sampan.scheduler.filters.node_ports import NODE_PORTS, conflicts
from sampan.scheduler.filters.node_resources_fit import NODE_RESOURCES_FIT
from sampan.scheduler.filters.node_unschedulable import NODE_UNSCHEDULABLE
from sampan.scheduler.filters.taint_toleration import TAINT_TOLERATION
from sampan.scheduler.node_terms import any_matches, holds
from sampan.scheduler.requests import Usage
from sampan.scheduler.rows import NodeRow, PodShape
from sampan.scheduler.tolerations import UNSCHEDULABLE, keeps_away, tolerated


@dataclass(frozen=True, slots=True)
class NodeAdded:
    node: NodeRow


@dataclass(frozen=True, slots=True)
class NodeChanged:
    old: NodeRow
    new: NodeRow


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod on a node ended, was deleted, or now takes less."""

    usage: Usage
    node: str


Event = NodeAdded | NodeChanged | PodGone


def may_help(event: Event, pod: PodShape, rules: frozenset[str]) -> bool:
    if not rules:  # there was no node at all
        return isinstance(event, NodeAdded)
    match event:
        case NodeAdded(node):
            # Every rule of the pod must be content with the new node, or it changes nothing.
            return UNSUPPORTED not in rules and could_take(node, pod)
        case NodeChanged(old, new):
            return UNSUPPORTED not in rules and could_take(new, pod) and _better(old, new)
        case PodGone(usage):
            return any(_frees(rule, usage, pod) for rule in rules)


def could_take(node: NodeRow, pod: PodShape) -> bool:
    """Whether the node would do, were it empty."""
    if node.unschedulable and not tolerated(pod.tolerations, UNSCHEDULABLE):
        return False
    if pod.node_name and pod.node_name != node.name:
        return False
    if keeps_away(pod.tolerations, node.taints):
        return False
    if not all(holds(one, node.labels.get(one.key)) for one in pod.selector):
        return False
    if pod.required is not None and not any_matches(pod.required, node.name, node.labels):
        return False
    return node.allowed_pods > 0 and all(
        amount <= node.allocatable.get(name, 0) for name, amount in pod.usage.requests
    )


def _better(old: NodeRow, new: NodeRow) -> bool:
    """Whether anything changed for which a filter may now let pass what it refused before."""
    return (
        old.unschedulable != new.unschedulable
        or old.taints != new.taints
        or old.labels != new.labels
        or new.allowed_pods > old.allowed_pods
        or any(amount > old.allocatable.get(name, 0) for name, amount in new.allocatable.items())
    )


def _frees(rule: str, usage: Usage, pod: PodShape) -> bool:
    if rule == NODE_RESOURCES_FIT.name:
        return True  # if nothing else, one pod less counts against the node's limit of pods
    if rule == NODE_PORTS.name:
        return any(
            (freed.protocol, freed.port) == (wanted.protocol, wanted.port)
            and conflicts(wanted.address, {freed.address: 1})
            for freed in usage.ports
            for wanted in pod.usage.ports
        )
    assert rule in _BY_NODE_ALONE, rule
    return False


_BY_NODE_ALONE = {
    NODE_AFFINITY.name, NODE_NAME.name, NODE_UNSCHEDULABLE.name, TAINT_TOLERATION.name, UNSUPPORTED,
}  # fmt: skip
