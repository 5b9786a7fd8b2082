"""Deployments: one ReplicaSet per template, and the way from one to the next.

Job: find or make the set for the current template, size all sets step by step, keep the history
    short, and say in the status how far it is.
Invariant: one step per plan: after a set was made or sized, the next step waits until it is seen.
Invariant: a paused Deployment is scaled but not rolled out; one that is being deleted only reports.
"""

from collections.abc import Iterable, Sequence

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    controller_of,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import EXISTENCE, OWNERS, PHASE, looks_at
from sampan.api.rules.conditions import find
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import (
    ORPHANS,
    SELECTOR,
    by_labels_of_orphan,
    by_selector,
    may_select,
    parsed,
    selected,
)
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Outcome,
    Patch,
    Plan,
    Record,
    deletion,
    merge_patch,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.workloads import deployment_status as reports
from sampan.controllers.workloads.adoption import lives
from sampan.controllers.workloads.deployment_sets import (
    REVISION,
    by_age,
    find_new_set,
    new_replica_set,
    new_set_annotations,
    surplus_sets,
)
from sampan.controllers.workloads.pod_control import (
    adopts_any,
    claim,
    controller_reference,
)
from sampan.controllers.workloads.rollout import (
    Sizes,
    is_rolling,
    is_scaling,
    new_set_size,
    replicas_of,
    scaled_sets,
    shrunk_old_sets,
    size_annotations,
)
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Situation:
    deployment: Obj
    sets: Sequence[Obj]  # those whose controller it is
    orphans: Sequence[Obj] = ()  # sets of the namespace that have no controller
    old_pods_run: bool = False  # for Recreate: pods of old sets are still there


def deployment_controller() -> Controller:
    return Controller(
        name="deployment-controller",
        component="deployment-controller",
        aliases=("deployment",),
        wakes={DEPLOYMENTS: own_key, REPLICA_SETS: _owner_of_set, PODS: _last_pod_gone},
        planned=_plan_key,
        indices={
            DEPLOYMENTS: {SELECTOR: by_selector},
            REPLICA_SETS: {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan},
            PODS: {"controller": by_controller_uid},
        },
    )


def plan(situation: Situation, now: float) -> Plan:
    deployment = situation.deployment
    if not _selects_something(deployment):
        return _selects_all(deployment)
    reference = controller_reference(DEPLOYMENTS, deployment)
    selector = parsed(deployment["spec"].get("selector"))
    claimed = claim(
        REPLICA_SETS, deployment, reference, selector, situation.sets, situation.orphans
    )
    if claimed.actions:
        return Plan(claimed.actions)
    sets = sorted(claimed.owned, key=by_age)
    new_set = find_new_set(deployment, sets)
    old_sets = [item for item in sets if item is not new_set]
    rollout = _Rollout(deployment, new_set, old_sets, now)
    if is_deleted(deployment):
        return rollout.report()
    if deployment["spec"].get("paused") or is_scaling(deployment, sets):
        return rollout.scale()
    if is_rolling(deployment):
        return rollout.roll()
    return rollout.recreate(situation.old_pods_run)


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One look at a Deployment; each method is a plan."""

    deployment: Obj
    new_set: Obj | None
    old_sets: Sequence[Obj]
    now: float

    def scale(self) -> Plan:
        conditions = _pause_conditions(self.deployment, _conditions(self.deployment), self.now)
        sizes = scaled_sets(self.deployment, self.new_set, self.old_sets)
        actions = self._size(sizes) or self._annotate()
        cleanup = [] if actions or not self.deployment["spec"].get("paused") else self._cleanup()
        return self._with_status([*actions, *cleanup], conditions, judged=False)

    def roll(self) -> Plan:
        if self.new_set is None:
            return self._created(new_set_size(self.deployment, self.old_sets, None))
        grown = new_set_size(self.deployment, [*self.old_sets, self.new_set], self.new_set)
        sizes: Sizes = {}
        if grown != replicas_of(self.new_set):
            sizes = {name_of(self.new_set): grown}
        return self._step(sizes or shrunk_old_sets(self.deployment, self.old_sets, self.new_set))

    def recreate(self, old_pods_run: bool) -> Plan:
        shrink: Sizes = {name_of(item): 0 for item in self.old_sets if replicas_of(item)}
        if shrink or old_pods_run:
            return self._step(shrink)
        if self.new_set is None:
            return self._created(replicas_of(self.deployment))
        wanted = replicas_of(self.deployment)
        grows = replicas_of(self.new_set) != wanted
        return self._step({name_of(self.new_set): wanted} if grows else {})

    def report(self) -> Plan:
        return self._with_status([], _conditions(self.deployment), judged=False)

    def _step(self, sizes: Sizes) -> Plan:
        conditions = _pause_conditions(self.deployment, _conditions(self.deployment), self.now)
        # Not both at once: they may concern the same set.
        actions = self._revise() or self._size(sizes)
        if self.new_set is not None and find(conditions, "Progressing") is None:
            conditions = self._found(conditions)
        if not actions:
            actions = self._cleanup_when_complete()
        return self._with_status(actions, conditions, judged=True)

    def _found(self, conditions: Sequence[Obj]) -> list[Obj]:
        if not reports.has_deadline(self.deployment) or self.new_set is None:
            return list(conditions)
        message = f'Found new replica set "{name_of(self.new_set)}"'
        verdict = reports.condition("Progressing", "True", "FoundNewReplicaSet", message)
        return reports.with_deployment_condition(conditions, verdict, self.now)

    def _created(self, size: int) -> Plan:
        """Make the set of the current template; the words of its success or failure follow."""
        wanted = new_replica_set(self.deployment, self.old_sets, size)

        def then(outcomes: Sequence[Outcome]) -> list[Action]:
            [outcome] = outcomes
            if isinstance(outcome.error, AlreadyExists):
                return [_collision(self.deployment)]
            if outcome.error is None and outcome.result is None:
                return []  # its namespace is going away
            conditions = _conditions(self.deployment)
            events, verdict = _creation_words(self.deployment, wanted, size, outcome)
            if reports.has_deadline(self.deployment):
                conditions = reports.with_deployment_condition(conditions, verdict, self.now)
            revision = [] if outcome.error else _revision_patch(self.deployment, wanted)
            status = reports.replica_counts(
                self.deployment, self.old_sets, None, conditions, self.now
            )
            patch = status_patch(DEPLOYMENTS, self.deployment, status)
            return [*events, *revision, *([patch] if patch is not None else [])]

        return Plan([Create(REPLICA_SETS, wanted)], then)

    def _with_status(
        self, actions: Sequence[Action], conditions: Sequence[Obj], *, judged: bool
    ) -> Plan:
        """The actions, and the status as the sets are now; `judged`: with a verdict on progress."""
        every = [*self.old_sets, *([self.new_set] if self.new_set is not None else [])]
        status = reports.replica_counts(self.deployment, every, self.new_set, conditions, self.now)
        if judged:
            status = reports.with_progress(self.deployment, status, self.new_set, self.now)
            status = reports.with_set_failure(status, every, self.new_set, self.now)
        patch = status_patch(DEPLOYMENTS, self.deployment, status)
        again = reports.seconds_to_deadline(self.deployment, status, self.now) if judged else None

        def then(outcomes: Sequence[Outcome]) -> list[Action]:
            events = [_sized_event(self.deployment, every, outcome) for outcome in outcomes]
            found: list[Action] = [event for event in events if event is not None]
            return [*found, patch] if patch is not None else found

        return Plan(actions, then, again)

    def _revise(self) -> list[Action]:
        """The new set carries the newest revision and the Deployment's annotations."""
        if self.new_set is None:
            return []
        annotations = new_set_annotations(self.deployment, self.new_set, self.old_sets)
        patch: Obj = {}
        if annotations != annotations_of(self.new_set):
            patch["metadata"] = {"annotations": annotations}
        seconds = self.deployment["spec"].get("minReadySeconds", 0)
        if self.new_set["spec"].get("minReadySeconds", 0) != seconds:
            patch["spec"] = {"minReadySeconds": seconds}
        if patch:
            return [merge_patch(REPLICA_SETS, self.new_set, patch)]
        return _revision_patch(self.deployment, self.new_set)

    def _size(self, sizes: Sizes) -> list[Action]:
        every = [*self.old_sets, *([self.new_set] if self.new_set is not None else [])]
        annotations = size_annotations(self.deployment)
        return [
            merge_patch(
                REPLICA_SETS,
                item,
                {
                    "spec": {"replicas": sizes[name_of(item)]},
                    "metadata": {"annotations": annotations},
                },
            )
            for item in every
            if name_of(item) in sizes
        ]

    def _annotate(self) -> list[Action]:
        """Nothing changes size, but the sets must learn what they were sized for."""
        every = [*self.old_sets, *([self.new_set] if self.new_set is not None else [])]
        annotations = size_annotations(self.deployment)
        return [
            merge_patch(REPLICA_SETS, item, {"metadata": {"annotations": annotations}})
            for item in every
            if replicas_of(item) > 0 and not annotations.items() <= annotations_of(item).items()
        ]

    def _cleanup_when_complete(self) -> list[Action]:
        every = [*self.old_sets, *([self.new_set] if self.new_set is not None else [])]
        status = reports.replica_counts(self.deployment, every, self.new_set, [], self.now)
        return self._cleanup() if reports.is_complete(self.deployment, status) else []

    def _cleanup(self) -> list[Action]:
        surplus = surplus_sets(self.deployment, self.old_sets)
        return [deletion(REPLICA_SETS, surplu) for surplu in surplus]


async def _plan_key(view: View, key: str) -> Plan:
    deployment = view.cache(DEPLOYMENTS).get(key)
    if deployment is None:
        return NOTHING
    cache = view.cache(REPLICA_SETS)
    sets = cache.by("controller", uid_of(deployment))
    selector = parsed(deployment["spec"].get("selector"))
    orphans = selected(cache, ORPHANS, namespace_of(deployment), selector)
    if adopts_any(selector, orphans) and not await lives(view, DEPLOYMENTS, deployment):
        orphans = []
    sets += await _made_already(view, deployment, sets)
    run = not is_rolling(deployment) and _old_pods_run(view, deployment, sets)
    return plan(Situation(deployment, sets, orphans, run), view.now)


async def _made_already(view: View, deployment: Obj, sets: Sequence[Obj]) -> list[Obj]:
    """The set of today's template, where we made it and neither heard nor saw that yet: taken for
    a stranger's, it would count as a collision of hashes."""
    if is_deleted(deployment) or find_new_set(deployment, sets) is not None:
        return []
    wanted = new_replica_set(deployment, (), 0)
    try:
        found = await view.client.get(REPLICA_SETS, namespace_of(deployment), name_of(wanted))
    except NotFound:
        return []
    ours = (controller_of(found) or {}).get("uid") == uid_of(deployment)
    return [found] if ours and find_new_set(deployment, [found]) else []


def _old_pods_run(view: View, deployment: Obj, sets: Sequence[Obj]) -> bool:
    new_set = find_new_set(deployment, sorted(sets, key=by_age))
    old_sets = [item for item in sets if item is not new_set]
    pods = (pod for item in old_sets for pod in view.cache(PODS).by("controller", uid_of(item)))
    return any(not pod_facts.is_terminal(pod) for pod in pods)


def _owner_of_set(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    keys = {key for item in (old, new) if item is not None for key in _deployment_key(item)}
    if new is not None and not keys and controller_of(new) is None and not is_deleted(new):
        labels = labels_of(new)
        for deployment in may_select(caches(DEPLOYMENTS), namespace_of(new), labels):
            if parsed(deployment["spec"].get("selector")).matches(labels):
                keys.add(key_of(deployment))
    return keys


@looks_at(EXISTENCE | OWNERS | PHASE, controller=REPLICA_SETS.kind)
def _last_pod_gone(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Recreate waits for old pods: their end concerns the Deployment above their set."""
    if new is not None and not pod_facts.is_terminal(new):
        return ()
    pod = new if new is not None else old
    controller = controller_of(pod) if pod is not None else None
    if pod is None or controller is None or controller.get("kind") != REPLICA_SETS.kind:
        return ()
    owner = caches(REPLICA_SETS).get(f"{namespace_of(pod)}/{controller.get('name', '')}")
    keys = () if owner is None else tuple(_deployment_key(owner))
    found = (caches(DEPLOYMENTS).get(key) for key in keys)
    return [key_of(match_) for match_ in found if match_ is not None and not is_rolling(match_)]


def _deployment_key(replica_set: Obj) -> Iterable[str]:
    controller = controller_of(replica_set)
    if controller is not None and controller.get("kind") == DEPLOYMENTS.kind:
        yield f"{namespace_of(replica_set)}/{controller.get('name', '')}"


def _selects_something(deployment: Obj) -> bool:
    selector = deployment["spec"].get("selector") or {}
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _selects_all(deployment: Obj) -> Plan:
    message = "This deployment is selecting all pods. A non-empty selector is required."
    actions: list[Action] = [Record(reference_to(deployment), "Warning", "SelectingAll", message)]
    generation = meta_of(deployment).get("generation", 0)
    status = {**(deployment.get("status") or {}), "observedGeneration": generation}
    patch = status_patch(DEPLOYMENTS, deployment, status)
    return Plan([*actions, patch]) if patch is not None else NOTHING


def _conditions(deployment: Obj) -> list[Obj]:
    return list((deployment.get("status") or {}).get("conditions") or [])


def _pause_conditions(deployment: Obj, conditions: list[Obj], now: float) -> list[Obj]:
    current = find(conditions, "Progressing")
    if not reports.has_deadline(deployment):
        return conditions
    if current is not None and current.get("reason") == "ProgressDeadlineExceeded":
        return conditions
    paused = bool(deployment["spec"].get("paused"))
    said = current is not None and current.get("reason") == "DeploymentPaused"
    if paused == said:
        return conditions
    word = "paused" if paused else "resumed"
    verdict = reports.condition(
        "Progressing", "Unknown", f"Deployment{word.capitalize()}", f"Deployment is {word}"
    )
    return reports.with_deployment_condition(conditions, verdict, now)


def _creation_words(
    deployment: Obj, wanted: Obj, size: int, outcome: Outcome
) -> tuple[list[Action], Obj]:
    about, name = reference_to(deployment), name_of(wanted)
    if outcome.error is not None:
        message = f'Failed to create new replica set "{name}": {outcome.error.message}'
        verdict = reports.condition("Progressing", "False", "ReplicaSetCreateError", message)
        return [Record(about, "Warning", "ReplicaSetCreateError", message)], verdict
    message = f'Created new replica set "{name}"'
    verdict = reports.condition("Progressing", "True", "NewReplicaSetCreated", message)
    if not size:
        return [], verdict
    scaled = f"Scaled up replica set {name} from 0 to {size}"
    return [Record(about, "Normal", "ScalingReplicaSet", scaled)], verdict


def _collision(deployment: Obj) -> Action:
    """Another template has our hash: count up, and the next hash will be another."""
    before: Obj = deployment.get("status") or {}
    patch = {"collisionCount": int(before.get("collisionCount") or 0) + 1}
    return Patch(
        DEPLOYMENTS,
        namespace_of(deployment),
        name_of(deployment),
        {"metadata": {"uid": uid_of(deployment)}, "status": patch},
        subresource="status",
    )


def _revision_patch(deployment: Obj, new_set: Obj) -> list[Action]:
    """As upstream, by its status: an annotation of the object itself counts as a generation."""
    revision = annotations_of(new_set).get(REVISION)
    if revision is None or annotations_of(deployment).get(REVISION) == revision:
        return []
    patch = {"metadata": {"uid": uid_of(deployment), "annotations": {REVISION: revision}}}
    namespace, name = namespace_of(deployment), name_of(deployment)
    return [Patch(DEPLOYMENTS, namespace, name, patch, subresource="status")]


def _sized_event(deployment: Obj, sets: Sequence[Obj], outcome: Outcome) -> Record | None:
    action = outcome.action
    if (
        outcome.error is not None
        or not isinstance(action, Patch)
        or action.resource != REPLICA_SETS
    ):
        return None
    assert isinstance(action.patch, dict)
    size = (action.patch.get("spec") or {}).get("replicas")
    before = next((item for item in sets if name_of(item) == action.name), None)
    if size is None or before is None:
        return None
    direction = "up" if size > replicas_of(before) else "down"
    message = f"Scaled {direction} replica set {action.name} from {replicas_of(before)} to {size}"
    return Record(reference_to(deployment), "Normal", "ScalingReplicaSet", message)
