"""ReplicaSets and ReplicationControllers: so many pods of one template.

Job: decide which pods to make, to delete, to adopt and to release, and what the status says.
Invariant: never more creations or deletions than the difference asks for, nor than BURST at once.
Invariant: a set that is being deleted makes and deletes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    labels_of,
    meta_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, OFFERED, looks_at
from sampan.api.rules.conditions import find, with_condition, without_condition
from sampan.api.rules.selectors import LabelSelector
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import (
    ORPHANS,
    SELECTOR,
    by_labels_of_orphan,
    by_selector,
    parsed,
    parsed_labels,
    selected,
)
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Plan,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key
from sampan.controllers.workloads.adoption import controllers_of, lives, may_adopt
from sampan.controllers.workloads.pod_control import (
    adopts_any,
    claim,
    controller_reference,
    first_to_go,
    is_active,
    pod_events,
    pod_from_template,
)
from sampan.controllers.workloads.replica_counts import (
    REPLICAS,
    Replicas,
    active_count,
    by_owner,
    matching,
    next_availability,
    replica_of,
    status_counts,
    terminating_count,
)
from sampan.core.fast_dataclass import dataclass

BURST = 500  # as upstream's burstReplicas


@dataclass(frozen=True, slots=True)
class Kind:
    """What differs between the two."""

    resource: Resource
    name: str
    aliases: tuple[str, ...]
    component: str
    selector: Callable[[Obj], LabelSelector]
    counts_terminating: bool  # whether the status has a field for them


def _set_selector(obj: Obj) -> LabelSelector:
    return parsed(obj["spec"].get("selector"))


def _map_selector(obj: Obj) -> LabelSelector:
    return parsed_labels(obj["spec"].get("selector"))


REPLICA_SET = Kind(
    REPLICA_SETS,
    "replicaset-controller",
    ("replicaset",),
    "replicaset-controller",
    _set_selector,
    counts_terminating=True,
)
REPLICATION_CONTROLLER = Kind(
    REPLICATION_CONTROLLERS,
    "replicationcontroller-controller",
    ("replicationcontroller",),
    "replication-controller",
    _map_selector,
    counts_terminating=False,
)


@dataclass(frozen=True, slots=True)
class Situation:
    owner: Obj
    replicas: Replicas  # how the pods stand whose controller it is
    pods: Sequence[Obj] = ()  # these pods, where some of them may have to go or to be released
    orphans: Sequence[Obj] = ()  # pods of the namespace that have no controller
    related: Sequence[Obj] = ()  # pods of sets with the same owner, to spread deletions


def replicaset_controller() -> Controller:
    return _controller(REPLICA_SET)


def replication_controller() -> Controller:
    return _controller(REPLICATION_CONTROLLER)


def plan(kind: Kind, situation: Situation, now: float) -> Plan:
    owner = situation.owner
    reference = controller_reference(kind.resource, owner)
    selector = kind.selector(owner)
    claimed = claim(PODS, owner, reference, selector, situation.pods, situation.orphans)
    replicas = Counter(matching(situation.replicas, selector))
    replicas.update(replica_of(pod) for pod in claimed.adopted)
    changes: list[Action] = []
    if not is_deleted(owner):
        missing = _replicas(owner) - active_count(replicas)
        changes = _changes(owner, reference, missing, claimed.owned, situation.related, now)

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        status = new_status(owner, replicas, failure_of(outcomes), now)
        if kind.counts_terminating:
            status["terminatingReplicas"] = terminating_count(replicas)
        patch = status_patch(kind.resource, owner, status)
        return [*pod_events(owner, outcomes), *([patch] if patch is not None else [])]

    again = next_availability(replicas, _min_ready_seconds(owner), now)
    unfinished = len(changes) == BURST
    return Plan([*claimed.actions, *changes], then, again, unfinished)


def new_status(owner: Obj, replicas: Replicas, failure: tuple[str, str] | None, now: float) -> Obj:
    """`failure`: reason and message of what could not be created or deleted."""
    template_labels = labels_of(owner["spec"].get("template") or {})
    before: Obj = owner.get("status") or {}
    status: Obj = {
        **status_counts(replicas, template_labels, _min_ready_seconds(owner), now),
        "observedGeneration": meta_of(owner).get("generation", 0),
    }
    conditions = _conditions(before.get("conditions") or [], failure, now)
    if conditions:
        status["conditions"] = conditions
    return status


def failure_of(outcomes: Sequence[Outcome]) -> tuple[str, str] | None:
    """Of creations and deletions: the first that failed, as a condition's reason and message."""
    for outcome in outcomes:
        if outcome.error is not None and isinstance(outcome.action, Create | Delete):
            creating = isinstance(outcome.action, Create)
            return "FailedCreate" if creating else "FailedDelete", outcome.error.message
    return None


def _controller(kind: Kind) -> Controller:
    async def planned(view: View, key: str) -> Plan:
        situation = await _situation(view, kind, key)
        return NOTHING if situation is None else plan(kind, situation, view.now)

    indices = {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan}
    return Controller(
        name=kind.name,
        component=kind.component,
        aliases=kind.aliases,
        wakes={kind.resource: own_key, PODS: _owner_of_pod(kind)},
        planned=planned,
        indices={
            PODS: indices,
            kind.resource: {SELECTOR: by_selector, "controller": by_controller_uid},
        },
        tallies={PODS: {REPLICAS: by_owner}},
    )


async def _situation(view: View, kind: Kind, key: str) -> Situation | None:
    owner = view.cache(kind.resource).get(key)
    if owner is None:
        return None
    pods = view.cache(PODS)
    selector = kind.selector(owner)
    orphans = selected(pods, ORPHANS, namespace_of(owner), selector)
    if adopts_any(selector, orphans) and not await lives(view, kind.resource, owner):
        orphans = []
    replicas = pods.tally(REPLICAS, uid_of(owner))
    if _min_ready_seconds(owner):
        replicas = Counter(map(replica_of, pods.by("controller", uid_of(owner))))
    stay = matching(replicas, selector)
    surplus = active_count(stay) + len(orphans) > _replicas(owner)
    owned: list[Obj] = []
    if surplus or len(stay) < len(replicas):
        owned = pods.by("controller", uid_of(owner))
    related: list[Obj] = []
    for sibling in _siblings(view, kind, owner) if surplus else ():
        related += pods.by("controller", uid_of(sibling))
    return Situation(owner, dict(replicas), owned, orphans, related)


def _siblings(view: View, kind: Kind, owner: Obj) -> list[Obj]:
    """The sets with the same controller (a Deployment's others), and itself."""
    controller = controller_of(owner)
    if controller is None:
        return [owner]
    return view.cache(kind.resource).by("controller", controller.get("uid", ""))


def _owner_of_pod(kind: Kind) -> Wake:
    """A pod's change concerns its controller, the one it had, or those that may adopt it."""

    @looks_at(ANYTHING, controller=kind.resource.kind, orphans=OFFERED)
    def wake(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
        keys = controllers_of(kind.resource.kind, old, new)
        return keys or may_adopt(caches, kind.resource, old, new, kind.selector)

    return wake


def _changes(
    owner: Obj,
    reference: Obj,
    missing: int,
    pods: Sequence[Obj],
    related: Sequence[Obj],
    now: float,
) -> list[Action]:
    if missing > 0:
        pod = pod_from_template(owner["spec"]["template"], owner, reference)
        return [Create(PODS, pod)] * min(missing, BURST)
    if missing == 0:
        return []
    active = [pod for pod in pods if is_active(pod)]
    neighbours = Counter(pod_facts.node_name(pod) for pod in related if is_active(pod))
    leaving = first_to_go(active, min(-missing, BURST), neighbours, now)
    return [deletion(PODS, pod) for pod in leaving]


def _conditions(before: Sequence[Obj], failure: tuple[str, str] | None, now: float) -> list[Obj]:
    if failure is None:
        return without_condition(before, "ReplicaFailure")
    known = find(before, "ReplicaFailure")
    if known is not None:
        return list(before)  # as upstream: the first failure's words stay until it is over
    reason, message = failure
    wanted = {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": message}
    return with_condition(before, wanted, now)


def _replicas(owner: Obj) -> int:
    wanted = owner["spec"].get("replicas")
    return 1 if wanted is None else int(wanted)


def _min_ready_seconds(owner: Obj) -> int:
    return int(owner["spec"].get("minReadySeconds") or 0)
