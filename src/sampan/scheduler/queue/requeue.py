"""Which event may help which refused pod. Pure.

Job: an event, a refused pod and the rules that refused it → is another attempt worth it?
Invariant: an event after which the pod could be scheduled is never answered with no.
"""

from sampan.api.rules.node_selectors import any_matches, holds
from sampan.api.rules.tolerations import UNSCHEDULABLE, is_tolerated, keeps_away
from sampan.scheduler.filters.dynamic_resources import DYNAMIC_RESOURCES
from sampan.scheduler.filters.inter_pod_affinity import INTER_POD_AFFINITY
from sampan.scheduler.filters.node_affinity import NODE_AFFINITY
from sampan.scheduler.filters.node_declared_features import NODE_DECLARED_FEATURES
from sampan.scheduler.filters.node_name import NODE_NAME
from sampan.scheduler.filters.node_ports import NODE_PORTS, conflicts
from sampan.scheduler.filters.node_resources_fit import NODE_RESOURCES_FIT
from sampan.scheduler.filters.node_unschedulable import NODE_UNSCHEDULABLE
from sampan.scheduler.filters.node_volume_limits import NODE_VOLUME_LIMITS
from sampan.scheduler.filters.pod_topology_spread import POD_TOPOLOGY_SPREAD
from sampan.scheduler.filters.taint_toleration import TAINT_TOLERATION
from sampan.scheduler.filters.volume_binding import VOLUME_BINDING
from sampan.scheduler.filters.volume_restrictions import VOLUME_RESTRICTIONS
from sampan.scheduler.filters.volume_zone import VOLUME_ZONE
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.cluster_events import (
    DevicesChanged,
    Event,
    NamespaceChanged,
    NodeAdded,
    NodeChanged,
    NodeGone,
    PodGone,
    PodPlaced,
    StorageChanged,
)
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import PodSelector, selects

_STORAGE = frozenset(
    rule.name for rule in (VOLUME_BINDING, VOLUME_ZONE, VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS)
)
_KNOWN = _STORAGE | {
    rule.name
    for rule in (
        NODE_UNSCHEDULABLE, NODE_NAME, TAINT_TOLERATION, NODE_AFFINITY, NODE_PORTS,
        NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD, INTER_POD_AFFINITY, NODE_DECLARED_FEATURES,
        DYNAMIC_RESOURCES,
    )
}  # fmt: skip
_SPREAD, _AFFINITY = POD_TOPOLOGY_SPREAD.name, INTER_POD_AFFINITY.name


def may_help(event: Event, pod: PodShape, rules: frozenset[str]) -> bool:
    if not rules:  # there was no node at all
        return isinstance(event, NodeAdded)
    if rules - _KNOWN:  # nobody says what helps a plugin
        return True
    return _helps(event, pod, rules)


def _helps(event: Event, pod: PodShape, rules: frozenset[str]) -> bool:
    match event:
        case NodeAdded(node):
            return _moves_domains(rules) or could_take(node, pod)
        case NodeChanged(old, new):
            return _move(old, new, rules) or (could_take(new, pod) and _better(old, new))
        case NodeGone():
            return _moves_domains(rules)
        case PodGone(gone):
            return any(_frees(rule, gone, pod) for rule in rules)
        case PodPlaced(placed):
            return (_AFFINITY in rules and _is_wanted_near(placed, pod)) or (
                _SPREAD in rules and _is_spread_with(placed, pod)
            )
        case NamespaceChanged(name):
            if name == pod.namespace:  # its own may be what others, or its devices, ask for
                return _AFFINITY in rules or DYNAMIC_RESOURCES.name in rules
            return _AFFINITY in rules and _looks_at_namespaces(pod)
        case StorageChanged():
            return bool(rules & _STORAGE)
        case DevicesChanged(name, freed):
            own = name is None or any(key == name for key, _ in pod.devices.claims)
            return DYNAMIC_RESOURCES.name in rules and (own or freed)


def _move(old: NodeInfo, new: NodeInfo, rules: frozenset[str]) -> bool:
    return _moves_domains(rules) and (old.labels, old.taints) != (new.labels, new.taints)


def could_take(node: NodeInfo, pod: PodShape) -> bool:
    """Whether the node would do, were it empty."""
    if node.unschedulable and not is_tolerated(pod.tolerations, UNSCHEDULABLE):
        return False
    if pod.node_name and pod.node_name != node.name:
        return False
    if keeps_away(pod.tolerations, node.taints):
        return False
    if not all(holds(item, node.labels.get(item.key)) for item in pod.selector):
        return False
    if pod.required is not None and not any_matches(pod.required, node.name, node.labels):
        return False
    return node.allowed_pods > 0 and all(
        amount <= node.allocatable.get(name, 0) for name, amount in pod.usage.requests
    )


def _moves_domains(rules: frozenset[str]) -> bool:
    """A node that comes, goes or is relabelled changes what is near and what is level, also for
    the other nodes."""
    return _SPREAD in rules or _AFFINITY in rules


def _better(old: NodeInfo, new: NodeInfo) -> bool:
    """Whether anything changed for which a filter may now let pass what it refused before."""
    return (
        old.unschedulable != new.unschedulable
        or old.taints != new.taints
        or old.labels != new.labels
        or old.features != new.features
        or new.allowed_pods > old.allowed_pods
        or any(amount > old.allocatable.get(name, 0) for name, amount in new.allocatable.items())
    )


def _frees(rule: str, gone: AssignedPod, pod: PodShape) -> bool:
    if rule == NODE_RESOURCES_FIT.name:
        return True  # if nothing else, one pod less counts against the node's limit of pods
    if rule == NODE_PORTS.name:
        return any(
            (freed.protocol, freed.port) == (wanted.protocol, wanted.port)
            and conflicts(wanted.address, {freed.address: 1})
            for freed in gone.usage.ports
            for wanted in pod.usage.ports
        )
    if rule == _SPREAD:
        return _is_spread_with(gone, pod)
    if rule in _STORAGE:
        return bool(gone.claims or gone.disks)
    # The other rules look at the node alone.
    return rule == _AFFINITY and (_is_in_the_way(gone, pod) or _is_wanted_near(gone, pod))


def _is_wanted_near(other: AssignedPod, pod: PodShape) -> bool:
    """One that comes is what the pod wants to be near; the last of a kind that goes makes room for
    the first of its kind."""
    terms = pod.demands.affinity
    return bool(terms) and all(_may_match(term.selector, other) for term in terms)


def _is_in_the_way(other: AssignedPod, pod: PodShape) -> bool:
    """By the anti-affinity of either."""
    if any(_may_match(term.selector, other) for term in pod.demands.anti_affinity):
        return True
    return any(item.forbids and _may_match(item.term.selector, pod) for item in other.carried)


def _is_spread_with(other: AssignedPod, pod: PodShape) -> bool:
    return any(_may_match(item.selector, other) for item in pod.demands.spread)


def _looks_at_namespaces(pod: PodShape) -> bool:
    terms = (*pod.demands.affinity, *pod.demands.anti_affinity)
    return any(term.selector.namespace_selector is not None for term in terms)


def _may_match(selector: PodSelector, pod: AssignedPod | PodShape) -> bool:
    """Whatever labels its namespace has."""
    there = pod.namespace in selector.namespaces or selector.namespace_selector is not None
    return there and selects(selector.labels, dict(pod.labels))
