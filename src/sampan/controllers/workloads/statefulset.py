"""StatefulSets: numbered pods that come, go and are updated in order, each with its own claims.

Job: decide the next step for the set's pods and claims, and what the status says.
Invariant: with OrderedReady a pod is made only when all before it are ready, and one goes only when
    all after it are gone; at most one step at a time.
Invariant: never two pods of one ordinal: the name is the lock.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import (
    Obj,
    is_deleted,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, OFFERED, looks_at
from sampan.api.rules.selectors import from_object
from sampan.client.events import reference as reference_to
from sampan.client.indexer import by_controller_uid
from sampan.client.label_index import ORPHANS, by_labels_of_orphan, selected
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Patch,
    Plan,
    Record,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View, own_key
from sampan.controllers.workloads.adoption import controllers_of, is_offered, lives
from sampan.controllers.workloads.pod_control import (
    adopts_any,
    available_at,
    claim,
    controller_reference,
)
from sampan.controllers.workloads.revisions import current_revision, surplus_revisions
from sampan.controllers.workloads.rollout import scaled_value
from sampan.controllers.workloads.stateful_pods import (
    claim_owners,
    claims_for,
    is_running_and_ready,
    new_pod,
    ordinal_of,
    revision_of_pod,
)
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Situation:
    owner: Obj
    pods: Sequence[Obj]
    claims: Mapping[str, Obj]  # by name, those of the namespace
    history: Sequence[Obj] = ()
    orphans: Sequence[Obj] = ()


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
            CONTROLLER_REVISIONS: {"controller": by_controller_uid},
        },
    )


def plan(situation: Situation, now: float) -> Plan:
    owner = situation.owner
    reference = controller_reference(STATEFUL_SETS, owner)
    selector = from_object(owner["spec"].get("selector"))
    named = [pod for pod in situation.orphans if ordinal_of(owner, pod) >= 0]
    claimed = claim(PODS, owner, reference, selector, situation.pods, named)
    if claimed.actions:
        return Plan(claimed.actions)
    revision = current_revision(STATEFUL_SETS, owner, situation.history)
    if revision.action is not None:
        return Plan([revision.action], again_seconds=0.0)
    rollout = _Rollout(owner, situation, revision.obj, now)
    steps = [] if is_deleted(owner) else rollout.steps()
    if not steps:
        used = {revision_of_pod(pod) for pod in situation.pods}
        used |= {name_of(revision.obj), rollout.current_name()}
        steps = surplus_revisions(
            situation.history, used, owner["spec"].get("revisionHistoryLimit")
        )

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        patch = status_patch(STATEFUL_SETS, owner, rollout.status())
        words: list[Action] = [*_words(owner, outcomes)]
        return [*words, patch] if patch is not None else words

    return Plan(steps, then, rollout.again())


@dataclass(frozen=True, slots=True)
class _Rollout:
    owner: Obj
    situation: Situation
    update: Obj  # the revision of today's template
    now: float

    def steps(self) -> list[Action]:
        for stage in (self._owned_claims, self._fill, self._shrunk, self._update):
            found = stage()
            if found is None:
                return []  # something must happen first; its event will wake us
            if found:
                return found
        return []

    def current_name(self) -> str:
        stored: str = (self.owner.get("status") or {}).get("currentRevision") or ""
        known = {name_of(item) for item in self.situation.history}
        return stored if stored in known else name_of(self.update)

    def status(self) -> Obj:
        before: Obj = self.owner.get("status") or {}
        current, update = self.current_name(), name_of(self.update)
        pods = self.situation.pods
        staying = [pod for pod in pods if not is_deleted(pod)]
        updated = sum(revision_of_pod(pod) == update for pod in staying)
        ready = sum(is_running_and_ready(pod) for pod in pods)
        if self._rolls() and updated == ready == self._replicas():
            current = update  # the update is complete
        status: Obj = {
            "replicas": len(pods),
            "availableReplicas": sum(self._is_available(pod) for pod in pods),
            "observedGeneration": meta_of(self.owner).get("generation", 0),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": before.get("collisionCount") or 0,
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

    def again(self) -> float | None:
        seconds = self._min_ready_seconds()
        times = [available_at(pod, seconds) for pod in self.situation.pods] if seconds else []
        coming = [moment - self.now for moment in times if moment is not None and moment > self.now]
        return min(coming) if coming else None

    def _fill(self) -> list[Action] | None:
        """Pods that are missing or have ended, in order."""
        steps: list[Action] = []
        pods = self._by_ordinal()
        for ordinal in self._ordinals():
            pod = pods.get(ordinal)
            if pod is None:
                steps += [*self._missing_claims(ordinal), self._creation(ordinal)]
            elif pod_facts.is_terminal(pod) and not is_deleted(pod):
                steps += [self._recreating(pod), deletion(PODS, pod, propagation=None)]
            elif self._is_monotonic() and not self._is_healthy(pod):
                # Claims that were lost are made again even while the pod waits for them.
                lost = self._missing_claims(ordinal)
                return lost or None
            if steps and self._is_monotonic():
                return steps
        return steps

    def _shrunk(self) -> list[Action] | None:
        """Pods beyond the wanted number, the highest first."""
        condemned = self._condemned_pods()
        if not self._is_monotonic():
            return [
                deletion(PODS, pod, propagation=None) for pod in condemned if not is_deleted(pod)
            ]
        if not condemned:
            return []
        highest, unhealthy = (
            condemned[0],
            [item for item in condemned if not self._is_healthy(item)],
        )
        if is_deleted(highest):
            return None
        # One that is broken goes only when no other below it is: it may still heal before.
        if not self._is_available(highest) and highest is not unhealthy[-1]:
            return None
        return [deletion(PODS, highest, propagation=None)]

    def _update(self) -> list[Action] | None:
        """Outdated pods, the highest first, as many as may be down at a time."""
        if not self._rolls():
            return []
        pods = self._by_ordinal()
        targets = [pods[o] for o in self._ordinals() if o in pods and o >= self._partition()]
        targets.reverse()
        most = self._max_unavailable()
        going = self._next_of(targets) if most == 1 else self._next_few_of(targets, most)
        return [deletion(PODS, pod, propagation=None) for pod in going]

    def _next_of(self, targets: Sequence[Obj]) -> list[Obj]:
        """The first outdated one, broken or not: the update may be what heals it."""
        for pod in targets:
            if self._is_outdated(pod):
                return [pod]
            if not self._is_healthy(pod):
                return []  # wait for it
        return []

    def _next_few_of(self, targets: Sequence[Obj], most: int) -> list[Obj]:
        """Those that are down anyway, and so many others that no more than `most` are."""
        down = sum(not self._is_healthy(pod) for pod in targets)
        outdated = [pod for pod in targets if self._is_outdated(pod)]
        broken = [pod for pod in outdated if not self._is_healthy(pod)]
        serving = [pod for pod in outdated if self._is_healthy(pod)]
        return [*broken, *serving[: max(0, most - down)]]

    def _is_outdated(self, pod: Obj) -> bool:
        return revision_of_pod(pod) != name_of(self.update) and not is_deleted(pod)

    def _creation(self, ordinal: int) -> Action:
        revision = self.update
        if self._needs_current(ordinal):
            names = {name_of(item): item for item in self.situation.history}
            revision = names.get(self.current_name(), self.update)
        return Create(PODS, new_pod(self.owner, revision, ordinal), settled=(AlreadyExists,))

    def _needs_current(self, ordinal: int) -> bool:
        """Below the partition, and in the part that the update has not reached, pods stay old."""
        if not self._rolls():
            return False
        rolling = (self.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        if rolling.get("partition") is None:
            current = int((self.owner.get("status") or {}).get("currentReplicas") or 0)
            return ordinal < self._start() + current
        return ordinal < self._partition()

    def _missing_claims(self, ordinal: int) -> list[Action]:
        wanted = claims_for(self.owner, ordinal)
        missing = [item for item in wanted if name_of(item) not in self.situation.claims]
        for item in missing:
            owners = claim_owners(self.owner, item, None, condemned=False)
            if owners:
                item["metadata"]["ownerReferences"] = owners
        return [
            Create(PERSISTENT_VOLUME_CLAIMS, item, settled=(AlreadyExists,)) for item in missing
        ]

    def _owned_claims(self) -> list[Action] | None:
        """Claims whose owners do not follow the retention policy."""
        if not self.owner["spec"].get("volumeClaimTemplates"):
            return []
        condemned = {name_of(pod) for pod in self._condemned_pods()}
        steps: list[Action] = []
        for pod in self.situation.pods:
            for wanted in claims_for(self.owner, ordinal_of(self.owner, pod)):
                there = self.situation.claims.get(name_of(wanted))
                if there is None:
                    continue
                owners = claim_owners(self.owner, there, pod, name_of(pod) in condemned)
                if owners != (meta_of(there).get("ownerReferences") or []):
                    steps.append(_owners_patch(there, owners))
        return steps

    def _recreating(self, pod: Obj) -> Record:
        failed = pod_facts.phase(pod) == "Failed"
        word = "failed" if failed else "terminated"
        key = f"{namespace_of(self.owner)}/{name_of(self.owner)}"
        message = f"StatefulSet {key} is recreating {word} Pod {name_of(pod)}"
        reason = "RecreatingFailedPod" if failed else "RecreatingTerminatedPod"
        return Record(reference_to(self.owner), "Warning" if failed else "Normal", reason, message)

    def _by_ordinal(self) -> dict[int, Obj]:
        return {ordinal_of(self.owner, pod): pod for pod in self.situation.pods}

    def _condemned_pods(self) -> list[Obj]:
        wanted = self._ordinals()
        beyond = [pod for pod in self.situation.pods if ordinal_of(self.owner, pod) not in wanted]
        return sorted(beyond, key=lambda pod: ordinal_of(self.owner, pod), reverse=True)

    def _ordinals(self) -> range:
        return range(self._start(), self._start() + self._replicas())

    def _start(self) -> int:
        return int((self.owner["spec"].get("ordinals") or {}).get("start") or 0)

    def _replicas(self) -> int:
        wanted = self.owner["spec"].get("replicas")
        return 1 if wanted is None else int(wanted)

    def _partition(self) -> int:
        rolling = (self.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        return self._start() + int(rolling.get("partition") or 0)

    def _max_unavailable(self) -> int:
        rolling = (self.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        amount = rolling.get("maxUnavailable", 1)
        return max(1, scaled_value(amount, self._replicas(), round_up=True))

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


def _owners_patch(claim_: Obj, owners: Sequence[Obj]) -> Patch:
    meta = {
        "uid": uid_of(claim_),
        "resourceVersion": meta_of(claim_).get("resourceVersion"),
        "ownerReferences": list(owners),
    }
    return Patch(
        PERSISTENT_VOLUME_CLAIMS,
        namespace_of(claim_),
        name_of(claim_),
        {"metadata": meta},
        settled=(NotFound,),
    )


def _words(owner: Obj, outcomes: Sequence[Outcome]) -> list[Record]:
    """As upstream's stateful pod control words them."""
    about, name = reference_to(owner), name_of(owner)
    words: list[Record] = []
    for outcome in outcomes:
        action = outcome.action
        if not isinstance(action, Create | Delete) or action.resource == CONTROLLER_REVISIONS:
            continue
        if outcome.error is None and outcome.result is None:
            continue
        verb = "create" if isinstance(action, Create) else "delete"
        subject = action.name if isinstance(action, Delete) else name_of(action.obj)
        kind = "Pod" if action.resource == PODS else "Claim"
        if outcome.error is None:
            message = f"{verb} {kind} {subject} in StatefulSet {name} successful"
            words.append(Record(about, "Normal", f"Successful{verb.capitalize()}", message))
        else:
            message = f"{verb} {kind} {subject} in StatefulSet {name} failed error: "
            message += outcome.error.message
            words.append(Record(about, "Warning", f"Failed{verb.capitalize()}", message))
    return words


async def _plan_key(view: View, key: str) -> Plan:
    owner = view.cache(STATEFUL_SETS).get(key)
    if owner is None:
        return NOTHING
    uid, namespace = uid_of(owner), namespace_of(owner)
    pods = view.cache(PODS)
    selector = from_object(owner["spec"].get("selector"))
    matching = selected(pods, ORPHANS, namespace, selector)
    orphans = [pod for pod in matching if ordinal_of(owner, pod) >= 0]
    if adopts_any(selector, orphans) and not await lives(view, STATEFUL_SETS, owner):
        orphans = []
    owned = pods.by("controller", uid)
    claims = _claims(view, owner, owned)
    history = view.cache(CONTROLLER_REVISIONS).by("controller", uid)
    return plan(Situation(owner, owned, claims, history, orphans), view.now)


def _claims(view: View, owner: Obj, pods: Sequence[Obj]) -> dict[str, Obj]:
    """The claims that exist of those that the set's ordinals could have."""
    if not owner["spec"].get("volumeClaimTemplates"):
        return {}
    start = int((owner["spec"].get("ordinals") or {}).get("start") or 0)
    replicas = owner["spec"].get("replicas")
    ordinals = {*range(start, start + (1 if replicas is None else int(replicas)))}
    ordinals |= {ordinal_of(owner, pod) for pod in pods}
    cache = view.cache(PERSISTENT_VOLUME_CLAIMS)
    found: dict[str, Obj] = {}
    for ordinal in ordinals:
        for wanted in claims_for(owner, ordinal):
            there = cache.get(f"{namespace_of(owner)}/{name_of(wanted)}")
            if there is not None:
                found[name_of(wanted)] = there
    return found


@looks_at(ANYTHING, controller=STATEFUL_SETS.kind, orphans=OFFERED)
def _set_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    keys = controllers_of(STATEFUL_SETS.kind, old, new)
    sets = caches(STATEFUL_SETS)
    if new is not None and not keys and len(sets) and is_offered(old, new):
        # Named like one of ours: it may be adopted.
        key = f"{namespace_of(new)}/{name_of(new).rpartition('-')[0]}"
        if key in sets:
            keys.add(key)
    return keys
