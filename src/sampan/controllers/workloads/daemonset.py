"""DaemonSets: one pod on every node that fits.

Job: decide on which nodes a pod is missing, too much or outdated, and what the status says.
Invariant: a node gets a pod only if the pod may run there; one that may no longer stay is removed.
Invariant: a rolling update never makes more pods unavailable than allowed.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, CAME, NODE, OFFERED, OWNERS, looks_at
from sampan.api.rules.tolerations import taints_of
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import (
    ORPHANS,
    SELECTOR,
    by_labels_of_orphan,
    by_selector,
    parsed,
    selected,
)
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Plan,
    Record,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.workloads.adoption import claims, controllers_of, lives, may_adopt
from sampan.controllers.workloads.daemon_layout import (
    Judged,
    Layout,
    has_ended_and_goes,
    judged_in_turns,
    layout_of,
    may_run,
    probe_of,
)
from sampan.controllers.workloads.daemon_pods import new_pod, target_node
from sampan.controllers.workloads.daemon_rollout import budget_of, pods_to_roll, surge_of
from sampan.controllers.workloads.pod_control import (
    adopts_any,
    available_at,
    controller_reference,
    pod_events,
)
from sampan.controllers.workloads.revisions import (
    HASH,
    Named,
    Revision,
    adopted_revisions,
    current_revision,
    hash_of,
    surplus_revisions,
)
from sampan.core.backoff import Backoff
from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import give_way

BURST = 250  # as upstream's BurstReplicas
FAILED_PAUSE = Backoff(first_seconds=1.0, cap_seconds=900.0)
MOST_FAILED_PLACES = 10_000
HEAVY = 200  # terms and tolerations of a template
NOT_JUDGED: Judged = {}


@dataclass(frozen=True, slots=True)
class Situation:
    daemon_set: Obj
    nodes: Sequence[Obj]
    pods: Sequence[Obj]
    history: Sequence[Obj] = ()
    # How long to wait before a node's failed pod is replaced.
    failed_pauses: Mapping[str, float] | None = None
    orphaned_history: Sequence[Obj] = ()
    revision: Named = lambda _name: None  # of the namespace, by name
    judged: Judged = NOT_JUDGED  # where its pods may run


def daemonset_controller() -> Controller:
    return Controller(
        name="daemonset-controller",
        component="daemonset-controller",
        aliases=("daemonset",),
        wakes={DAEMON_SETS: own_key, NODES: _sets_for_node, PODS: _set_of_pod},
        planned=_planner(_FailedPods()),
        indices={
            DAEMON_SETS: {SELECTOR: by_selector},
            PODS: {
                "controller": by_controller_uid,
                "daemon node": _by_target_node,
                ORPHANS: by_labels_of_orphan,
            },
            CONTROLLER_REVISIONS: {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan},
        },
        workers=2,
    )


def plan(situation: Situation, now: float) -> Plan:
    owner = situation.daemon_set
    if not _selects_something(owner):
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        return Plan([Record(reference_to(owner), "Warning", "SelectingAll", message)])
    if is_deleted(owner):
        return NOTHING
    adopted = adopted_revisions(DAEMON_SETS, owner, situation.orphaned_history)
    if adopted:
        return Plan(adopted, again_seconds=0.0)
    revision = current_revision(DAEMON_SETS, owner, situation.history, situation.revision)
    if revision.action is not None:
        return Plan([revision.action], lambda _done: _collisions(owner, revision), 0.0)
    word = hash_of(revision.obj)
    layout = layout_of(owner, situation.nodes, situation.pods, word, now, situation.judged)
    paused = situation.failed_pauses or {}
    creations, removals = _pods_to_manage(layout, paused)
    if not creations and not removals:
        creations, removals = surge_of(layout)
        removals = [*removals, *pods_to_roll(layout)]
    reference = controller_reference(DAEMON_SETS, owner)
    actions: list[Action] = [
        *(Create(PODS, new_pod(owner, reference, node, word)) for node in creations[:BURST]),
        *(deletion(PODS, pod, propagation=None) for pod in removals[:BURST]),
    ]
    if not actions:
        used = {labels_of(pod).get(HASH, "") for pod in situation.pods} | {word}
        limit = owner["spec"].get("revisionHistoryLimit")
        actions += surplus_revisions(situation.history, used, limit)

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        patch = status_patch(DAEMON_SETS, owner, new_status(layout))
        words = [*_failed_words(layout, removals), *pod_events(owner, outcomes)]
        return [*words, patch] if patch is not None else words

    return Plan(actions, then, _again(situation, layout, now), apart=True)


def _collisions(owner: Obj, revision: Revision) -> list[Action]:
    """Names that were taken are counted before anything else is written."""
    before = owner.get("status") or {}
    if revision.collisions is None:
        return []
    patch = status_patch(DAEMON_SETS, owner, {**before, "collisionCount": revision.collisions})
    return [patch] if patch is not None else []


def _pods_to_manage(layout: Layout, paused: Mapping[str, float]) -> tuple[list[str], list[Obj]]:
    """Nodes that lack a pod, and pods that are too many, in the wrong place, or finished."""
    creations: list[str] = []
    removals: list[Obj] = []
    surge, _ = budget_of(layout)
    for place in layout.places:
        living = [pod for pod in place.pods if not is_deleted(pod)]
        if not place.should_continue:
            removals += living
            continue
        running = [pod for pod in living if not pod_facts.is_terminal(pod)]
        removals += _ended_pods(living, held=paused.get(place.name, 0.0) > 0)
        # One that has ended and is going takes nobody's place; in a surge none that is going does.
        vacant = all(has_ended_and_goes(pod) for pod in place.pods) or (surge and not running)
        if place.should_run and vacant:
            creations.append(place.name)
        removals += _doubles(layout, running, surge)
    return creations, [*removals, *_waiting_in_vain(layout)]


def _ended_pods(living: Sequence[Obj], *, held: bool) -> list[Obj]:
    """`held`: failed ones stay for a while, so that they do not come as fast as they fail."""
    ended = [pod for pod in living if pod_facts.is_terminal(pod)]
    return [pod for pod in ended if pod_facts.phase(pod) != "Failed"] if held else ended


def _waiting_in_vain(layout: Layout) -> list[Obj]:
    """For a node that is gone. Who has been bound to it is the pod garbage collector's."""
    return [pod for pod in layout.strays if not pod_facts.node_name(pod) and not is_deleted(pod)]


def _doubles(layout: Layout, running: Sequence[Obj], surge: int) -> list[Obj]:
    """Of several pods on one node the oldest stays; in a surge an old and a new one may."""
    if len(running) < 2:
        return []
    ordered = sorted(running, key=_seniority)
    if not surge:
        return ordered[1:]
    old = [pod for pod in ordered if not layout.is_current(pod)]
    new = [pod for pod in ordered if layout.is_current(pod)]
    extra = [*old[1:], *new[1:]]
    # The old one goes when the new one serves, or when it is not even ready itself.
    if old and new and (layout.is_available(new[0]) or not pod_facts.is_ready(old[0])):
        extra.append(old[0])
    return extra


def _seniority(pod: Obj) -> tuple[bool, str, str]:
    """Bound ones before those that wait, then by age."""
    created = meta_of(pod).get("creationTimestamp") or ""
    return not pod_facts.node_name(pod), created, name_of(pod)


def new_status(layout: Layout) -> Obj:
    desired = current = misplaced = ready = available = updated = 0
    for place in layout.places:
        pods = [pod for pod in place.pods if not has_ended_and_goes(pod)]
        if not place.should_run:
            misplaced += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        # As upstream: where a surge has put two, the older one speaks for the node.
        first = min(pods, key=_seniority)
        ready += pod_facts.is_ready(first)
        available += layout.serves(first)
        updated += layout.is_current(first)
    status: Obj = {
        "currentNumberScheduled": current,
        "numberMisscheduled": misplaced,
        "desiredNumberScheduled": desired,
        "numberReady": ready,
        "observedGeneration": meta_of(layout.owner).get("generation", 0),
    }
    optional = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }
    collisions = (layout.owner.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    return {**status, **{name: count for name, count in optional.items() if count}}


def _failed_words(layout: Layout, removals: Sequence[Obj]) -> list[Action]:
    about = reference_to(layout.owner)
    words: list[Action] = []
    for pod in removals:
        phase = pod_facts.phase(pod)
        named = f"daemon pod {key_of(pod)} on node {target_node(pod)}"
        if phase == "Failed":
            message = f"Found failed {named}, will try to kill it"
            words.append(Record(about, "Warning", "FailedDaemonPod", message))
        elif phase == "Succeeded":
            message = f"Found succeeded {named}, will try to delete it"
            words.append(Record(about, "Normal", "SucceededDaemonPod", message))
    return words


def _again(situation: Situation, layout: Layout, now: float) -> float | None:
    """The next pod that becomes available by waiting, or the next failed one that may go."""
    seconds = int(layout.owner["spec"].get("minReadySeconds") or 0)
    times = [available_at(pod, seconds) for pod in situation.pods] if seconds else []
    coming = [moment - now for moment in times if moment is not None and moment > now]
    coming += [pause for pause in (situation.failed_pauses or {}).values() if pause > 0]
    return min(coming) if coming else None


def _selects_something(owner: Obj) -> bool:
    selector = owner["spec"].get("selector") or {}
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


class _FailedPods:
    """How long a node's failed pod stays before it is replaced: longer after each one. As upstream,
    it is forgotten half an hour after the last."""

    def __init__(self) -> None:
        # By the set's uid and the node: failures in a row, and when the last pod was removed.
        self._killed: Bounded[tuple[str, str], tuple[int, float]] = Bounded(MOST_FAILED_PLACES)

    def pauses(self, uid: str, pods: Sequence[Obj], now: float) -> dict[str, float]:
        failed = [
            target_node(pod)
            for pod in pods
            if pod_facts.phase(pod) == "Failed" and not is_deleted(pod)
        ]
        found: dict[str, float] = {}
        for node in failed:
            count, at = self._killed.get((uid, node), (0, 0.0))
            found[node] = at + FAILED_PAUSE.delay(count) - now if count else 0.0
        return found

    def remember(self, uid: str, pods: Sequence[Obj], made: Plan, now: float) -> None:
        gone = {action.uid for action in made.actions if isinstance(action, Delete)}
        for pod in pods:
            if uid_of(pod) in gone and pod_facts.phase(pod) == "Failed":
                key = (uid, target_node(pod))
                count, at = self._killed.get(key, (0, 0.0))
                is_old = now - at > 2 * FAILED_PAUSE.cap_seconds
                self._killed[key] = (1 if is_old else count + 1, now)


def _planner(failed: _FailedPods) -> Callable[[View, str], Awaitable[Plan]]:
    async def planned(view: View, key: str) -> Plan:
        owner = view.cache(DAEMON_SETS).get(key)
        if owner is None:
            return NOTHING
        uid, nodes = uid_of(owner), list(view.cache(NODES).all())
        judged: dict[str, tuple[bool, bool]] = {}
        for turn in judged_in_turns(owner, nodes):
            judged |= turn
            if len(judged) < len(nodes) or probe_of(owner).weight > HEAVY:
                await give_way()
        pods, revisions = view.cache(PODS).by("controller", uid), view.cache(CONTROLLER_REVISIONS)
        selects = _selects_something(owner)
        if selects and (claimed := await claims(view, DAEMON_SETS, owner, pods)):
            return Plan(claimed)
        situation = Situation(
            owner,
            nodes,
            pods,
            revisions.by("controller", uid),
            failed.pauses(uid, pods, view.now),
            await _orphaned_history(view, owner) if selects else (),
            lambda name: revisions.get(f"{namespace_of(owner)}/{name}"),
            judged,
        )
        made = plan(situation, view.now)
        failed.remember(uid, pods, made, view.now)
        return made

    return planned


async def _orphaned_history(view: View, owner: Obj) -> Sequence[Obj]:
    """Revisions that nobody has, where the set may still adopt."""
    selector = parsed(owner["spec"].get("selector"))
    left = selected(view.cache(CONTROLLER_REVISIONS), ORPHANS, namespace_of(owner), selector)
    if is_deleted(owner) or not adopts_any(selector, left):
        return ()
    return left if await lives(view, DAEMON_SETS, owner) else ()


def _sets_for_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A node came, went, or changed in what decides who may run there. As upstream, a set whose pod
    may go on there, though no new one might come, is left alone."""
    if new is None:
        return [key_of(item) for item in caches(DAEMON_SETS).all()]
    if old is not None and _place_facts(old) == _place_facts(new):
        return ()
    there = Counter(
        (controller_of(pod) or {}).get("uid")
        for pod in caches(PODS).by("daemon node", name_of(new))
    )
    return [key_of(item) for item in caches(DAEMON_SETS).all() if _concerns(item, new, there)]


@looks_at(OWNERS | NODE | CAME)
def _by_target_node(pod: Obj) -> Iterable[str]:
    """Of daemons only, bound or not."""
    is_daemon = (controller_of(pod) or {}).get("kind") == DAEMON_SETS.kind
    return (target_node(pod),) if is_daemon else ()


def _concerns(owner: Obj, node: Obj, there: Mapping[object, int]) -> bool:
    probe = probe_of(owner)
    if probe.weight > HEAVY:
        return True  # whoever plans takes turns
    run, stay = may_run(probe, node)
    if not there.get(uid_of(owner)):
        return run
    return not stay or bool((owner.get("status") or {}).get("numberMisscheduled"))


def _place_facts(node: Obj) -> tuple[object, ...]:
    return labels_of(node), taints_of(node)


@looks_at(ANYTHING, controller=DAEMON_SETS.kind, orphans=OFFERED)
def _set_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {
        *controllers_of(DAEMON_SETS.kind, old, new),
        *may_adopt(caches, DAEMON_SETS, old, new),
    }
