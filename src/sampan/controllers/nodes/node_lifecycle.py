"""Nodes that stop reporting, and the taints that say so.

Job: a node's conditions → its taints; no heartbeat for too long → conditions Unknown; a node that
    is not Ready makes its pods not Ready.
Invariant: only taints of our own keys are added or removed; a user's taints stay.
Invariant: how old a heartbeat is, is measured by when *we* saw it change: node clocks may be wrong.
Invariant: the signs of life of all nodes are looked at together, when the first of them may have
    been silent for too long: a renewal costs a note of its moment, not a turn.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from enum import Enum

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, is_deleted, name_of, namespace_of, time_text, uid_of
from sampan.api.resources import LEASES, NODES, PODS
from sampan.api.rules.aspects import CAME, DELETION, NODE, PHASE, STATUS, looks_at
from sampan.api.rules.conditions import condition_of
from sampan.api.rules.nodes import is_ready, is_unschedulable, taints_of
from sampan.api.rules.pods import is_terminal
from sampan.client.events import reference
from sampan.client.indexer import Cache, by_node_name
from sampan.controllers.actions import NOTHING, Action, Patch, Plan, Record, merge_patch
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key
from sampan.controllers.nodes.lease_circuit_breaker import unless_leases_are_behind
from sampan.controllers.nodes.node_metrics import node_counting
from sampan.controllers.nodes.zones import (
    NOT_READY,
    EvictionPace,
    Zone,
    all_down,
    by_zone_and_readiness,
    evictions_per_second,
    zone_of,
    zones_of,
)
from sampan.core.fast_dataclass import dataclass

GRACE_SECONDS = 50.0  # --node-monitor-grace-period
STARTUP_GRACE_SECONDS = 60.0  # --node-startup-grace-period
LEASE_NAMESPACE = "kube-node-lease"
PREFIX = "node.kubernetes.io/"
# Condition and status → the key of the NoSchedule taint.
NO_SCHEDULE = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
OWN_KEYS = frozenset(PREFIX + key for key in (*NO_SCHEDULE.values(), "unschedulable"))
NEVER = "Kubelet never posted node status."
STOPPED = "Kubelet stopped posting node status."
REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
NODE_INDEX = "node"
ZONE_INDEX, FALLEN_INDEX = "zone and readiness", "not ready"


class Eviction(Enum):
    """Whether a node that fell may get its NoExecute taint."""

    NOW = "now"
    LATER = "later"  # its zone has lost a node just now, or too many: what has the taint keeps it
    NEVER = "never"  # every node is down: nobody is sent away, and who was may stay


@dataclass(slots=True)
class SignsOfLife:
    """When each node last gave one, as the caches showed it."""

    now: Callable[[], float]
    attended: Callable[[str], bool]
    seen_at: dict[str, float] = field(default_factory=dict)
    registered: dict[str, str] = field(default_factory=dict)  # names and uids of known nodes
    looking: bool = False  # somebody will look at them all

    def note(self, name: str) -> None:
        self.seen_at[name] = self.now()

    def begin_to_look(self, name: str) -> bool:
        """Whether somebody has to, for this node."""
        if self.looking or self.attended(name):
            return False
        self.looking = True
        return True

    def forget(self, name: str) -> str | None:
        """The uid that it had; None where nobody knew it."""
        self.seen_at.pop(name, None)
        return self.registered.pop(name, None)


@dataclass(frozen=True, slots=True)
class AllNodes:
    """The key under which the signs of life are looked at."""


def node_lifecycle_controller(
    now: Callable[[], float],
    grace_seconds: float = GRACE_SECONDS,
    attended: Callable[[str], bool] = lambda _node: False,
) -> Controller:
    """`now`: when something is heard of; `grace_seconds`: how long a node may be silent;
    `attended`: whether its lease is renewed for certain when it falls silent, and not before."""
    signs = SignsOfLife(now, attended)
    pace = EvictionPace()

    async def planned(view: View, key: str | AllNodes) -> Plan:
        if isinstance(key, AllNodes):
            return await unless_leases_are_behind(view, look(view, signs, grace_seconds))
        node = view.cache(NODES).get(key)
        if node is None:
            uid = signs.forget(key)
            return NOTHING if uid is None else Plan([_removal_event(key, uid)])
        pods = view.cache(PODS).by(NODE_INDEX, key)
        eviction, wait = _eviction(view, pace, node)
        seen_at = view.now if attended(key) else signs.seen_at.setdefault(key, view.now)
        made = plan(node, pods, seen_at, view.now, eviction, grace_seconds)
        made = await unless_leases_are_behind(view, made)
        if key not in signs.registered:
            signs.registered[key] = uid_of(node)
            made = replace(made, actions=[_registration_event(node), *made.actions])
        return replace(made, again_seconds=made.again_seconds or wait)

    return Controller(
        name="node-lifecycle-controller",
        component="node-controller",
        aliases=("nodelifecycle",),
        wakes={
            NODES: _with_the_fallen(signs),
            LEASES: _on_renewal(signs),
            PODS: _ready_on_a_node,
        },
        indices={
            PODS: {NODE_INDEX: by_node_name},
            NODES: {ZONE_INDEX: by_zone_and_readiness, FALLEN_INDEX: _fallen},
        },
        planned=planned,
        workers=8,
        counted=node_counting,
    )


def look(view: View, signs: SignsOfLife, grace_seconds: float) -> Plan:
    """Who has been silent for too long, and when the next one may have been."""
    actions: list[Action] = []
    soonest = math.inf
    for node in view.cache(NODES).all():
        ready = condition_of(node, "Ready")
        if ready is not None and ready.get("status") == "Unknown":
            continue
        if signs.attended(name_of(node)):
            continue
        seen_at = signs.seen_at.setdefault(name_of(node), view.now)
        left = _left(ready, seen_at, view.now, grace_seconds)
        if left <= 0:
            actions += _silent(node, view.now)
        # One that comes or reports meanwhile may be silent for as long as any.
        soonest = min(soonest, left if left > 0 else grace_seconds, grace_seconds)
    signs.looking = soonest < math.inf
    return Plan(actions, again_seconds=soonest if signs.looking else None)


def _left(ready: Obj | None, seen_at: float, now: float, grace_seconds: float) -> float:
    """How long the node may still be silent."""
    return seen_at + (grace_seconds if ready is not None else STARTUP_GRACE_SECONDS) - now


def plan(
    node: Obj,
    pods: Sequence[Obj],
    heartbeat_seen_at: float,
    now: float,
    eviction: Eviction = Eviction.NOW,
    grace_seconds: float = GRACE_SECONDS,
) -> Plan:
    ready = condition_of(node, "Ready")
    left = _left(ready, heartbeat_seen_at, now, grace_seconds)
    status = (ready or {}).get("status")
    if left <= 0 and status != "Unknown":
        # Taints and pods follow when this write comes back as a change of the node.
        return Plan(_silent(node, now))
    if status is None:
        return NOTHING
    actions: list[Action] = []
    taints = wanted_taints(node, now, eviction)
    if taints != taints_of(node):
        actions.append(merge_patch(NODES, node, {"spec": {"taints": taints or None}}))
    # A kubelet that says itself that it is not ready goes on to tell of its pods.
    if status == "Unknown":
        ready_pods = [pod for pod in pods if _shows_ready(pod)]
        actions += [_not_ready(pod, now) for pod in ready_pods]
        actions += [
            Record(reference(pod), "Warning", "NodeNotReady", "Node is not ready")
            for pod in ready_pods
        ]
    return Plan(actions)


def _conditions_as_taints(node: Obj, eviction: Eviction) -> list[tuple[str, str]]:
    """(key, effect) for what the node's conditions say of it."""
    wanted = [
        (PREFIX + NO_SCHEDULE[pair], "NoSchedule")
        for condition in (node.get("status") or {}).get("conditions") or ()
        if (pair := (condition.get("type"), condition.get("status"))) in NO_SCHEDULE
    ]
    if is_unschedulable(node):
        wanted.append((f"{PREFIX}unschedulable", "NoSchedule"))
    ready = (condition_of(node, "Ready") or {}).get("status")
    evicts = eviction is Eviction.NOW or (eviction is Eviction.LATER and _is_evicting(node))
    if evicts and ready in ("False", "Unknown"):
        wanted.append((PREFIX + NO_SCHEDULE["Ready", ready], "NoExecute"))
    return wanted


def wanted_taints(node: Obj, now: float, eviction: Eviction = Eviction.NOW) -> list[Obj]:
    """The node's taints as they should be; a taint that stays keeps its time."""
    wanted = _conditions_as_taints(node, eviction)
    kept = [taint for taint in taints_of(node) if not _is_ours(taint) or _pair(taint) in wanted]
    there = {_pair(taint) for taint in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": time_text(now)}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    return [*kept, *added]


def _last_heartbeat(node: Obj | None) -> str:
    ready = None if node is None else condition_of(node, "Ready")
    heartbeat: str = (ready or {}).get("lastHeartbeatTime") or ""
    return heartbeat


def _renew_time(lease: Obj | None) -> str:
    renewed: str = ((lease or {}).get("spec") or {}).get("renewTime") or ""
    return renewed


def _silent(node: Obj, now: float) -> list[Action]:
    """The kubelet stopped posting: what it last said means nothing any more."""
    name = name_of(node)
    conditions = _unknown(node, now)
    patch = {"metadata": {"uid": uid_of(node)}, "status": {"conditions": conditions}}
    about = _about(name, uid_of(node))
    message = f"Node {name} status is now: NodeNotReady"
    return [
        Patch(NODES, "", name, patch, patch_type="strategic", subresource="status"),
        Record(about, "Normal", "NodeNotReady", message),
    ]


def _unknown(node: Obj, now: float) -> list[Obj]:
    listed = {
        condition["type"]: condition
        for condition in (node.get("status") or {}).get("conditions") or ()
    }
    for kind in REPORTED:
        before = listed.get(kind)
        if before is not None and before.get("status") == "Unknown":
            continue
        never = before is None
        listed[kind] = {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusNeverUpdated" if never else "NodeStatusUnknown",
            "message": NEVER if never else STOPPED,
            "lastHeartbeatTime": (before or {}).get("lastHeartbeatTime")
            or _creation_time(node, now),
            "lastTransitionTime": time_text(now),
        }
    return list(listed.values())


def _creation_time(node: Obj, now: float) -> str:
    created: str = node.get("metadata", {}).get("creationTimestamp") or time_text(now)
    return created


def _shows_ready(pod: Obj) -> bool:
    ready = condition_of(pod, "Ready")
    return ready is not None and ready.get("status") == "True" and not is_terminal(pod)


def _not_ready(pod: Obj, now: float) -> Patch:
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": time_text(now)}
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
    return Patch(
        PODS, namespace_of(pod), name_of(pod), patch,
        patch_type="strategic", subresource="status", settled=(NotFound,),
    )  # fmt: skip


def _pair(taint: Obj) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def _is_ours(taint: Obj) -> bool:
    key, effect = _pair(taint)
    return key in OWN_KEYS and effect in ("NoSchedule", "NoExecute")


def _is_evicting(node: Obj) -> bool:
    return any(_is_ours(taint) and taint.get("effect") == "NoExecute" for taint in taints_of(node))


def _eviction(view: View, pace: EvictionPace, node: Obj) -> tuple[Eviction, float | None]:
    """What the zone's pace allows for this node, and when to look again."""
    ready = condition_of(node, "Ready")
    if ready is None or ready.get("status") == "True":
        return Eviction.NOW, None
    zones, zone = _zones(view.cache(NODES)), zone_of(node)
    if all_down(zones):
        return Eviction.NEVER, None  # the next node that comes back wakes us
    if _is_evicting(node):
        return Eviction.NOW, None
    rate = evictions_per_second(zones, zone)
    if not rate:
        return Eviction.LATER, None
    wait = pace.seconds_left(zone, view.now)
    if wait > 0:
        return Eviction.LATER, wait
    pace.used(zone, rate, view.now)
    return Eviction.NOW, None


def _registration_event(node: Obj) -> Record:
    name = name_of(node)
    message = f"Node {name} event: Registered Node {name} in Controller"
    return Record(_about(name, uid_of(node)), "Normal", "RegisteredNode", message)


def _removal_event(name: str, uid: str) -> Record:
    message = f"Node {name} event: Removing Node {name} from Controller"
    return Record(_about(name, uid), "Normal", "RemovingNode", message)


def _about(name: str, uid: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}


def _zones(nodes: Cache) -> dict[str, Zone]:
    return zones_of(nodes.index_values(ZONE_INDEX), lambda entry: nodes.count(ZONE_INDEX, entry))


def _fallen(node: Obj) -> Iterable[str]:
    return () if is_ready(node) else (NOT_READY,)


def _with_the_fallen(signs: SignsOfLife) -> Wake:
    """A node's own change; where it changes how fast zones are evicted, all that are not ready."""
    known: tuple[bool, dict[str, float]] = (False, {})

    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str | AllNodes]:
        nonlocal known
        if new is not None and (old is None or _last_heartbeat(old) != _last_heartbeat(new)):
            signs.note(name_of(new))
        nodes = caches(NODES)
        zones = _zones(nodes)
        rates = {zone: evictions_per_second(zones, zone) for zone in zones}
        before, known = known, (all_down(zones), rates)
        woken: list[str | AllNodes] = [*own_key(caches, old, new)]
        if before != known:
            woken += (name_of(node) for node in nodes.by(FALLEN_INDEX, NOT_READY))
        if new is not None and signs.begin_to_look(name_of(new)):
            woken.insert(0, AllNodes())
        return woken

    return wake


def _on_renewal(signs: SignsOfLife) -> Wake:
    """Its moment is noted. It wakes a node only where that counts as silent."""

    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str | AllNodes]:
        if new is None or namespace_of(new) != LEASE_NAMESPACE:
            return ()
        if old is not None and _renew_time(old) == _renew_time(new):
            return ()
        name = name_of(new)
        node = caches(NODES).get(name)
        if node is None:
            return ()
        signs.note(name)
        ready = condition_of(node, "Ready")
        if ready is not None and ready.get("status") == "Unknown":
            return (name,)
        return (AllNodes(),) if signs.begin_to_look(name) else ()

    return wake


@looks_at(CAME | NODE | DELETION | PHASE | STATUS)
def _ready_on_a_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A pod that has just become Ready, where its node is silent."""
    if new is None or is_deleted(new) or not _shows_ready(new) or (old and _shows_ready(old)):
        return ()
    name = str((new.get("spec") or {}).get("nodeName") or "")
    node = caches(NODES).get(name) if name else None
    ready = condition_of(node, "Ready") if node is not None else None
    return (name,) if ready is not None and ready.get("status") == "Unknown" else ()
