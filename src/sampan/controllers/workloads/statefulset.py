"""StatefulSets: numbered pods that come, go and are updated in order, each with its own claims.

Job: decide the next step for the set's pods and claims, and what the status says.
Invariant: with OrderedReady a pod is made only when all before it are ready, and one goes only when
    all after it are gone; at most one step at a time.
Invariant: never two pods of one ordinal: the name is the lock.
Invariant: no more than BURST steps at a time; nothing is as long as spec.replicas says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sampan.api import features
from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import Obj, is_deleted, meta_of, name_of, namespace_of, uid_of
from sampan.api.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, OFFERED, WENT, looks_at
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import ORPHANS, by_labels_of_orphan, parsed, selected
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
from sampan.controllers.workloads.adoption import controllers_of, is_offered, lives
from sampan.controllers.workloads.claim_retention import (
    first_references,
    has_other_controller,
    waits_for_collection,
    wanted_references,
)
from sampan.controllers.workloads.pod_control import (
    adopts_any,
    available_at,
    claim,
    controller_reference,
)
from sampan.controllers.workloads.revisions import (
    Named,
    Revision,
    adopted_revisions,
    current_revision,
    surplus_revisions,
)
from sampan.controllers.workloads.stateful_events import (
    claim_events,
    conflicting_controller,
    failed_creation,
    pod_events,
    updated_pod,
)
from sampan.controllers.workloads.stateful_pods import (
    claim_names,
    claims_for,
    first_missing,
    has_identity,
    identity_labels,
    is_running_and_ready,
    new_pod,
    ordinal_of,
    revision_of_pod,
)
from sampan.controllers.workloads.stateful_step import Creation, Step
from sampan.controllers.workloads.stateful_update import (
    Candidate,
    most_unavailable,
    next_outdated,
    several_outdated,
)
from sampan.core.fast_dataclass import dataclass

BURST = 200  # pods with their claims, as they are sent
# A claim that is on its way out: nothing tells when it is gone.
LOOK_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Situation:
    owner: Obj
    pods: Sequence[Obj]
    claim: Named  # of the namespace, by name
    history: Sequence[Obj] = ()
    orphans: Sequence[Obj] = ()  # pods
    orphaned_history: Sequence[Obj] = ()
    revision: Named = lambda _name: None  # of the namespace, by name


def statefulset_controller() -> Controller:
    return Controller(
        name="statefulset-controller",
        component="statefulset-controller",
        aliases=("statefulset",),
        wakes={STATEFUL_SETS: own_key, PODS: _set_of_pod},
        planned=_plan_key,
        indices={
            PODS: {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan},
            PERSISTENT_VOLUME_CLAIMS: {},
            CONTROLLER_REVISIONS: {"controller": by_controller_uid, ORPHANS: by_labels_of_orphan},
        },
    )


def plan(situation: Situation, now: float) -> Plan:
    owner = situation.owner
    claimed = [
        *adopted_revisions(STATEFUL_SETS, owner, situation.orphaned_history),
        *_claimed_pods(situation),
    ]
    if claimed:
        return Plan(claimed, again_seconds=0.0)
    revision = current_revision(STATEFUL_SETS, owner, situation.history, situation.revision)
    if revision.action is not None:
        return Plan([revision.action], lambda _done: _collisions(owner, revision), 0.0)
    rollout = _Rollout(owner, situation, revision, now)
    step = Step() if is_deleted(owner) else rollout.step()
    actions = [*step.actions, *(made for item in step.creations for made in item.claims)]
    if step.is_empty() and not is_deleted(owner):
        used = {revision_of_pod(pod) for pod in situation.pods}
        used |= {name_of(revision.obj), rollout.current_name()}
        limit = owner["spec"].get("revisionHistoryLimit")
        actions += surplus_revisions(situation.history, used, limit)

    def pods(outcomes: Sequence[Outcome]) -> Plan:
        made = [Create(PODS, item.pod, settled=(AlreadyExists,)) for item in step.ready(outcomes)]
        gone = [deletion(PODS, pod, propagation=None) for pod in step.deletions]
        said = claim_events(owner, step, outcomes)
        return Plan([*said, *made, *gone], status)

    def status(outcomes: Sequence[Outcome]) -> list[Action]:
        patch = status_patch(STATEFUL_SETS, owner, rollout.status())
        said: list[Action] = [*step.events, *pod_events(owner, outcomes)]
        return [*said, patch] if patch is not None else said

    return Plan(actions, pods, rollout.again(step))


def _claimed_pods(situation: Situation) -> list[Patch]:
    """Adopted and released, by selector and by name."""
    owner = situation.owner
    reference = controller_reference(STATEFUL_SETS, owner)
    selector = parsed(owner["spec"].get("selector"))
    named = [pod for pod in situation.orphans if ordinal_of(owner, pod) >= 0]
    found = claim(PODS, owner, reference, selector, situation.pods, named)
    return list(found.actions)


def _collisions(owner: Obj, revision: Revision) -> list[Action]:
    """Names that were taken are counted before anything else is written."""
    before = owner.get("status") or {}
    if revision.collisions is None:
        return []
    patch = status_patch(STATEFUL_SETS, owner, {**before, "collisionCount": revision.collisions})
    return [patch] if patch is not None else []


@dataclass(frozen=True, slots=True)
class _Rollout:
    owner: Obj
    situation: Situation
    revision: Revision  # of today's template
    now: float

    def step(self) -> Step:
        filled = self._filled() if self._is_monotonic() else self._filled_at_once()
        if filled.blocks:
            return filled
        step = filled.with_(self._shrunk())
        if step.blocks or step.creations or step.deletions:
            return step
        return step.with_(self._update())

    def current_name(self) -> str:
        stored: str = (self.owner.get("status") or {}).get("currentRevision") or ""
        known = {name_of(item) for item in self.situation.history}
        return stored if stored in known else name_of(self.revision.obj)

    def status(self) -> Obj:
        before: Obj = self.owner.get("status") or {}
        current, update = self.current_name(), name_of(self.revision.obj)
        pods = self.situation.pods
        staying = [pod for pod in pods if not is_deleted(pod)]
        updated = sum(revision_of_pod(pod) == update for pod in staying)
        ready = sum(is_running_and_ready(pod) for pod in pods)
        if self._rolls() and updated == ready == len(pods) == self._replicas():
            current = update  # the update is complete
        status: Obj = {
            "replicas": len(pods),
            "availableReplicas": sum(self._is_available(pod) for pod in pods),
            "observedGeneration": meta_of(self.owner).get("generation", 0),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": self.revision.collisions or 0,
        }
        counts = {
            "readyReplicas": ready,
            "currentReplicas": sum(revision_of_pod(pod) == current for pod in staying),
            "updatedReplicas": updated,
        }
        status |= {name: count for name, count in counts.items() if count}
        if before.get("conditions"):
            status["conditions"] = before["conditions"]
        return status

    def again(self, step: Step) -> float | None:
        seconds = self._min_ready_seconds()
        times = [available_at(pod, seconds) for pod in self.situation.pods] if seconds else []
        coming = [moment - self.now for moment in times if moment is not None and moment > self.now]
        coming += [LOOK_AGAIN_SECONDS] if step.waits else []
        return min(coming) if coming else None

    def _filled(self) -> Step:
        """One after the other: the first pod that is missing or not healthy holds up the rest."""
        step, expected = Step(), self._start()
        for ordinal, pod in sorted(self._replica_pods().items()):
            if ordinal != expected:
                break
            step = step.with_(self._tended(pod, ordinal))
            if step.blocks:
                return step
            expected += 1
        if expected >= self._start() + self._replicas():
            return step
        return step.with_(replace(self._creation(expected), blocks=True))

    def _filled_at_once(self) -> Step:
        step, pods = Step(), self._replica_pods()
        for ordinal, pod in pods.items():
            step = step.with_(self._tended(pod, ordinal))
        missing = first_missing(pods, self._start(), self._replicas(), BURST)
        for ordinal in missing:
            step = step.with_(self._creation(ordinal))
        return step

    def _tended(self, pod: Obj, ordinal: int) -> Step:
        """What a pod that is there needs."""
        blocks = self._is_monotonic() and not self._is_healthy(pod)
        if pod_facts.is_terminal(pod):
            # Whatever it ended with: the next one is made when it is gone.
            return Step(deletions=[] if is_deleted(pod) else [pod], blocks=self._is_monotonic())
        lost = Step()
        if pod_facts.phase(pod) == "Pending":
            lost = Step(self._missing_claims(ordinal))
        return replace(lost if blocks else lost.with_(self._mended(pod, ordinal)), blocks=blocks)

    def _mended(self, pod: Obj, ordinal: int) -> Step:
        """Its name in its labels, and the owners of its claims."""
        actions: list[Action] = []
        said: list[Record] = []
        for there in self._claims_of(ordinal):
            if has_other_controller(self.owner, pod, there):
                said.append(conflicting_controller(self.owner, there))
            wanted = wanted_references(self.owner, pod, there, condemned=False)
            if wanted is not None:
                actions.append(_references_patch(there, wanted))
        if not has_identity(pod):
            actions.append(_identity_patch(pod, identity_labels(self.owner, ordinal)))
        # As upstream: the claims of a pod that waits for them are seen to without a word.
        if actions and not (has_identity(pod) and pod_facts.phase(pod) == "Pending"):
            actions.append(updated_pod(self.owner, pod))
        return Step(actions, events=said)

    def _creation(self, ordinal: int) -> Step:
        name, claims = f"{name_of(self.owner)}-{ordinal}", self._claims_of(ordinal)
        if any(waits_for_collection(self.owner, item, name) for item in claims):
            return Step(waits=True, blocks=self._is_monotonic())
        leaving = [name_of(item) for item in claims if is_deleted(item)]
        if leaving:
            said = [failed_creation(self.owner, name, leaving)]
            return Step(events=said, waits=True, blocks=self._is_monotonic())
        revision = self.revision.obj
        if self._needs_current(ordinal):
            names = {name_of(item): item for item in self.situation.history}
            revision = names.get(self.current_name(), revision)
        pod = new_pod(self.owner, revision, ordinal)
        return Step(creations=[Creation(pod, self._missing_claims(ordinal))])

    def _shrunk(self) -> Step:
        """Pods beyond the wanted number, the highest first."""
        condemned = self._condemned_pods()
        handed = [
            _references_patch(there, wanted)
            for pod in condemned
            for there in self._claims_of(ordinal_of(self.owner, pod))
            if (wanted := wanted_references(self.owner, pod, there, condemned=True)) is not None
        ]
        if not self._is_monotonic() or not condemned:
            going = [pod for pod in condemned if not is_deleted(pod)]
            return Step(handed, deletions=going[:BURST])
        highest = condemned[0]
        unhealthy = [item for item in condemned if not self._is_healthy(item)]
        # One that is broken goes only when no other below it is: it may still heal before.
        waits = not self._is_available(highest) and highest is not unhealthy[-1]
        if is_deleted(highest) or waits:
            return Step(handed, blocks=True)
        return Step(handed, deletions=[highest], blocks=True)

    def _update(self) -> Step:
        if not self._rolls():
            return Step()
        pods, least = self._replica_pods(), self._start() + self._partition()
        found = [
            Candidate(
                pods[ordinal],
                revision_of_pod(pods[ordinal]) != name_of(self.revision.obj)
                and not is_deleted(pods[ordinal]),
                ordinal < least,
                self._is_healthy(pods[ordinal]),
            )
            for ordinal in sorted(pods, reverse=True)
        ]
        if not features.enabled("MaxUnavailableStatefulSet"):
            return Step(deletions=next_outdated(found))
        heals = not self._is_monotonic() and features.changed("ParallelUpdateHeals")
        most = most_unavailable(self._rolling(), self._replicas())
        return Step(deletions=several_outdated(found, most, heals=heals)[:BURST])

    def _needs_current(self, ordinal: int) -> bool:
        """Below the partition pods stay old."""
        return self._rolls() and ordinal < self._start() + self._partition()

    def _missing_claims(self, ordinal: int) -> list[Action]:
        missing: list[Action] = []
        for item in claims_for(self.owner, ordinal):
            if self.situation.claim(name_of(item)) is None:
                references = first_references(self.owner)
                if references:
                    item["metadata"]["ownerReferences"] = references
                missing.append(Create(PERSISTENT_VOLUME_CLAIMS, item, settled=(AlreadyExists,)))
        return missing

    def _claims_of(self, ordinal: int) -> list[Obj]:
        """Those that exist."""
        names = claim_names(self.owner, ordinal)
        return [there for name in names if (there := self.situation.claim(name)) is not None]

    def _replica_pods(self) -> dict[int, Obj]:
        first, last = self._start(), self._start() + self._replicas() - 1
        numbered = ((ordinal_of(self.owner, pod), pod) for pod in self.situation.pods)
        return {ordinal: pod for ordinal, pod in numbered if first <= ordinal <= last}

    def _condemned_pods(self) -> list[Obj]:
        wanted = {uid_of(pod) for pod in self._replica_pods().values()}
        beyond = [pod for pod in self.situation.pods if uid_of(pod) not in wanted]
        return sorted(beyond, key=lambda pod: ordinal_of(self.owner, pod), reverse=True)

    def _start(self) -> int:
        return int((self.owner["spec"].get("ordinals") or {}).get("start") or 0)

    def _replicas(self) -> int:
        wanted = self.owner["spec"].get("replicas")
        return 1 if wanted is None else int(wanted)

    def _partition(self) -> int:
        return int(self._rolling().get("partition") or 0)

    def _rolling(self) -> Obj:
        strategy: Obj = self.owner["spec"].get("updateStrategy") or {}
        return strategy.get("rollingUpdate") or {}

    def _rolls(self) -> bool:
        strategy = self.owner["spec"].get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    def _is_monotonic(self) -> bool:
        return bool(self.owner["spec"].get("podManagementPolicy", "OrderedReady") != "Parallel")

    def _min_ready_seconds(self) -> int:
        return int(self.owner["spec"].get("minReadySeconds") or 0)

    def _is_available(self, pod: Obj) -> bool:
        moment = available_at(pod, self._min_ready_seconds())
        return is_running_and_ready(pod) and moment is not None and moment <= self.now

    def _is_healthy(self, pod: Obj) -> bool:
        return self._is_available(pod) and not is_deleted(pod)


def _references_patch(claim_: Obj, references: Sequence[Obj]) -> Patch:
    return _meta_patch(PERSISTENT_VOLUME_CLAIMS, claim_, {"ownerReferences": list(references)})


def _identity_patch(pod: Obj, labels: dict[str, str]) -> Patch:
    return _meta_patch(PODS, pod, {"labels": labels})


def _meta_patch(resource: Resource, obj: Obj, changes: Obj) -> Patch:
    """Of the very object that was looked at."""
    patch = merge_patch(resource, obj, {"metadata": changes})
    return replace(patch, settled=(NotFound,))


async def _plan_key(view: View, key: str) -> Plan:
    owner = view.cache(STATEFUL_SETS).get(key)
    if owner is None:
        return NOTHING
    uid, namespace = uid_of(owner), namespace_of(owner)
    pods, revisions = view.cache(PODS), view.cache(CONTROLLER_REVISIONS)
    selector = parsed(owner["spec"].get("selector"))
    matching = selected(pods, ORPHANS, namespace, selector)
    orphans = [pod for pod in matching if ordinal_of(owner, pod) >= 0]
    left = selected(revisions, ORPHANS, namespace, selector)
    offered = adopts_any(selector, [*orphans, *left])
    if is_deleted(owner) or (offered and not await lives(view, STATEFUL_SETS, owner)):
        orphans, left = [], []
    claims = view.cache(PERSISTENT_VOLUME_CLAIMS)
    situation = Situation(
        owner,
        pods.by("controller", uid),
        lambda name: claims.get(f"{namespace}/{name}"),
        revisions.by("controller", uid),
        orphans,
        left,
        lambda name: revisions.get(f"{namespace}/{name}"),
    )
    return plan(situation, view.now)


@looks_at(ANYTHING, controller=STATEFUL_SETS.kind, orphans=OFFERED | WENT)
def _set_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    keys = controllers_of(STATEFUL_SETS.kind, old, new)
    sets = caches(STATEFUL_SETS)
    pod = new if new is not None else old
    if pod is None or keys or not len(sets):
        return keys
    if new is None or is_offered(old, new):
        # Named like one of ours: it may be adopted, or was in the way.
        key = f"{namespace_of(pod)}/{name_of(pod).rpartition('-')[0]}"
        if key in sets:
            keys.add(key)
    return keys
