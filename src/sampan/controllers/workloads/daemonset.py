"""DaemonSets: one pod on every node that fits.

Job: decide on which nodes a pod is missing, too much or outdated, and what the status says.
Invariant: a node gets a pod only if the pod may run there; one that may no longer stay is removed.
Invariant: a rolling update never makes more pods unavailable than allowed.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from sampan.api.objects import (
    Obj,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    uid_of,
)
from sampan.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, OFFERED, looks_at
from sampan.api.rules.node_selectors import may_run_on
from sampan.api.rules.tolerations import NO_EXECUTE, keeps_away, taints_of, tolerations_of
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import ORPHANS, SELECTOR, by_labels_of_orphan, by_selector
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
from sampan.controllers.workloads.adoption import claims, controllers_of, may_adopt
from sampan.controllers.workloads.daemon_pods import new_pod, target_node, with_tolerations
from sampan.controllers.workloads.pod_control import (
    available_at,
    controller_reference,
    finished_at,
    pod_events,
)
from sampan.controllers.workloads.revisions import (
    HASH,
    current_revision,
    hash_of,
    surplus_revisions,
)
from sampan.controllers.workloads.rollout import scaled_value
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass

BURST = 250  # as upstream's BurstReplicas
FAILED_PAUSE = Backoff(first_seconds=1.0, cap_seconds=900.0)


@dataclass(frozen=True, slots=True)
class Situation:
    daemon_set: Obj
    nodes: Sequence[Obj]
    pods: Sequence[Obj]
    history: Sequence[Obj] = ()
    # How long to wait before a node's failed pod is replaced.
    failed_pauses: Mapping[str, float] | None = None


def daemonset_controller() -> Controller:
    failures: Counter[tuple[str, str]] = Counter()  # (set's uid, node) → failed pods in a row
    return Controller(
        name="daemonset-controller",
        component="daemonset-controller",
        aliases=("daemonset",),
        wakes={DAEMON_SETS: own_key, NODES: _sets_for_node, PODS: _set_of_pod},
        planned=_planner(failures),
        indices={
            DAEMON_SETS: {SELECTOR: by_selector},
            PODS: {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan},
            CONTROLLER_REVISIONS: {"controller": by_controller_uid},
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
    revision = current_revision(DAEMON_SETS, owner, situation.history)
    if revision.action is not None:
        return Plan([revision.action], again_seconds=0.0)
    word = hash_of(revision.obj)
    layout = _layout(situation, word, now)
    creations, removals = _pods_to_manage(layout)
    if not creations and not removals:
        removals = _pods_to_roll(layout)
        creations = [] if removals else _nodes_to_surge(layout)
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

    return Plan(actions, then, _again(situation, layout, now))


@dataclass(frozen=True, slots=True)
class _Place:
    """One node, as the set sees it."""

    node: Obj
    should_run: bool
    should_continue: bool
    pods: Sequence[Obj]  # of this set, meant for this node

    @property
    def name(self) -> str:
        return name_of(self.node)


@dataclass(frozen=True, slots=True)
class _Layout:
    owner: Obj
    word: str
    places: Sequence[_Place]
    strays: Sequence[Obj]  # pods for nodes that do not exist
    paused: Mapping[str, float]
    now: float

    def is_current(self, pod: Obj) -> bool:
        return labels_of(pod).get(HASH) == self.word

    def serves(self, pod: Obj) -> bool:
        """Ready for long enough, be it on its way out."""
        moment = available_at(pod, int(self.owner["spec"].get("minReadySeconds") or 0))
        return moment is not None and moment <= self.now

    def is_available(self, pod: Obj) -> bool:
        return self.serves(pod) and not is_deleted(pod)


def _layout(situation: Situation, word: str, now: float) -> _Layout:
    owner = situation.daemon_set
    by_node: dict[str, list[Obj]] = {}
    for pod in situation.pods:
        by_node.setdefault(target_node(pod), []).append(pod)
    probe = {"metadata": {}, "spec": with_tolerations(owner["spec"]["template"].get("spec") or {})}
    places: list[_Place] = []
    for node in situation.nodes:
        run, stay = _may_run(probe, node)
        places.append(_Place(node, run, stay, by_node.pop(name_of(node), [])))
    strays = [pod for pods in by_node.values() for pod in pods]
    return _Layout(owner, word, places, strays, situation.failed_pauses or {}, now)


def _may_run(probe: Obj, node: Obj) -> tuple[bool, bool]:
    """Whether a new pod may go there, and whether one that is there may stay."""
    wanted = (probe["spec"].get("nodeName") or name_of(node)) == name_of(node)
    if not wanted or not may_run_on(probe, name_of(node), labels_of(node)):
        return False, False
    tolerations, taints = tolerations_of(probe), taints_of(node)
    stays = not keeps_away(tolerations, taints, (NO_EXECUTE,))
    return not keeps_away(tolerations, taints), stays


def _pods_to_manage(layout: _Layout) -> tuple[list[str], list[Obj]]:
    """Nodes that lack a pod, and pods that are too many, in the wrong place, or finished."""
    creations: list[str] = []
    removals: list[Obj] = []
    surge, _ = _budget(layout)
    for place in layout.places:
        living = [pod for pod in place.pods if not is_deleted(pod)]
        if not place.should_continue:
            removals += living
            continue
        ended = [pod for pod in living if pod_facts.is_terminal(pod)]
        if layout.paused.get(place.name, 0.0) <= 0:
            removals += ended
        running = [pod for pod in living if pod not in ended]
        # One that has ended and is going takes nobody's place.
        if place.should_run and all(_has_ended_and_goes(pod) for pod in place.pods):
            creations.append(place.name)
        removals += _doubles(layout, running, surge)
    # Who has a node that is gone is the pod garbage collector's; who waits for one waits in vain.
    removals += [
        pod for pod in layout.strays if not pod_facts.node_name(pod) and not is_deleted(pod)
    ]
    return creations, removals


def _doubles(layout: _Layout, running: Sequence[Obj], surge: int) -> list[Obj]:
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


def _has_ended_and_goes(pod: Obj) -> bool:
    return is_deleted(pod) and pod_facts.is_terminal(pod)


def _pods_to_roll(layout: _Layout) -> list[Obj]:
    """Outdated pods that may go now, without a surge."""
    strategy = layout.owner["spec"].get("updateStrategy") or {}
    surge, unavailable = _budget(layout)
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or surge:
        return []
    going: list[Obj] = []
    candidates: list[Obj] = []
    down = 0
    for place in layout.places:
        if not place.should_run:
            continue
        living = [pod for pod in place.pods if not is_deleted(pod)]
        serving = bool(living) and layout.is_available(living[0])
        if not serving:
            down += 1
        if living and not layout.is_current(living[0]):
            (candidates if serving else going).append(living[0])
    return [*going, *candidates[: max(0, unavailable - down)]]


def _nodes_to_surge(layout: _Layout) -> list[str]:
    """Nodes that get a new pod beside their outdated one."""
    surge, _ = _budget(layout)
    strategy = layout.owner["spec"].get("updateStrategy") or {}
    if not surge or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    broken: list[str] = []
    outdated: list[str] = []
    surging = 0
    for place in layout.places:
        living = [pod for pod in place.pods if not is_deleted(pod)]
        new = [pod for pod in living if layout.is_current(pod)]
        if not place.should_run or not living or len(new) == len(living):
            continue
        if new:
            surging += 1
        else:
            (outdated if layout.is_available(living[0]) else broken).append(place.name)
    # As upstream: where the old pod does not serve anyway, its replacement is no surge.
    return [*broken, *outdated[: max(0, surge - surging)]]


def _budget(layout: _Layout) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in nodes."""
    strategy = layout.owner["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    nodes = sum(place.should_run for place in layout.places)
    surge = scaled_value(rolling.get("maxSurge", 0), nodes, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", 1), nodes, round_up=True)
    return (surge, 0) if surge else (0, max(1, unavailable))


def new_status(layout: _Layout) -> Obj:
    desired = current = misplaced = ready = available = updated = 0
    for place in layout.places:
        pods = [pod for pod in place.pods if not _has_ended_and_goes(pod)]
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


def _failed_words(layout: _Layout, removals: Sequence[Obj]) -> list[Action]:
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


def _again(situation: Situation, layout: _Layout, now: float) -> float | None:
    """The next pod that becomes available by waiting, or the next failed one that may go."""
    seconds = int(layout.owner["spec"].get("minReadySeconds") or 0)
    times = [available_at(pod, seconds) for pod in situation.pods] if seconds else []
    coming = [moment - now for moment in times if moment is not None and moment > now]
    coming += [pause for pause in layout.paused.values() if pause > 0]
    return min(coming) if coming else None


def _selects_something(owner: Obj) -> bool:
    selector = owner["spec"].get("selector") or {}
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _planner(failures: Counter[tuple[str, str]]) -> Callable[[View, str], Awaitable[Plan]]:
    async def planned(view: View, key: str) -> Plan:
        owner = view.cache(DAEMON_SETS).get(key)
        if owner is None:
            return NOTHING
        uid = uid_of(owner)
        pods = view.cache(PODS).by("controller", uid)
        if _selects_something(owner) and (claimed := await claims(view, DAEMON_SETS, owner, pods)):
            return Plan(claimed)
        pauses = _pauses(failures, uid, pods, view.now)
        history = view.cache(CONTROLLER_REVISIONS).by("controller", uid)
        nodes = list(view.cache(NODES).all())
        made = plan(Situation(owner, nodes, pods, history, pauses), view.now)
        _remember(failures, uid, pods, made)
        return made

    return planned


def _pauses(
    failures: Counter[tuple[str, str]], uid: str, pods: Sequence[Obj], now: float
) -> dict[str, float]:
    found: dict[str, float] = {}
    for pod in pods:
        node = target_node(pod)
        if pod_facts.phase(pod) == "Failed" and not is_deleted(pod):
            found[node] = finished_at(pod) + FAILED_PAUSE.delay(failures[uid, node]) - now
        elif pod_facts.is_ready(pod):
            failures.pop((uid, node), None)
    return found


def _remember(
    failures: Counter[tuple[str, str]], uid: str, pods: Sequence[Obj], made: Plan
) -> None:
    gone = {action.uid for action in made.actions if isinstance(action, Delete)}
    for pod in pods:
        if uid_of(pod) in gone and pod_facts.phase(pod) == "Failed":
            failures[uid, target_node(pod)] += 1


def _sets_for_node(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A node came, went, or changed in what decides who may run there."""
    if old is not None and new is not None and _place_facts(old) == _place_facts(new):
        return ()
    return [key_of(item) for item in caches(DAEMON_SETS).all()]


def _place_facts(node: Obj) -> tuple[object, ...]:
    return labels_of(node), taints_of(node), (node.get("spec") or {}).get("unschedulable")


@looks_at(ANYTHING, controller=DAEMON_SETS.kind, orphans=OFFERED)
def _set_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return {
        *controllers_of(DAEMON_SETS.kind, old, new),
        *may_adopt(caches, DAEMON_SETS, old, new),
    }
