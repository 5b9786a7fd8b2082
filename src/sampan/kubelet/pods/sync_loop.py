"""The sync loop: pod updates, runtime events and orphans, handed to the pod workers.

Job: merge what the sources want, dispatch each change, and find what runs without being wanted.
    It is called by events; it has no tick of its own.
Invariant: nothing is cleaned up before every source has spoken once.
Invariant: a pod that does not fit is never started.
Invariant: no pod is refused because of a Node object that is older than the pod.
Owner: Kubelet; the sources and Pleg call it.
"""

from collections.abc import Callable, Mapping, Sequence

from sampan.api.objects import (
    Obj,
    is_deleted,
    key_of,
    meta_of,
    seconds_of,
    spec_of,
    time_text,
    uid_of,
)
from sampan.api.quantity import Quantity, value_of
from sampan.api.rules.pods import is_critical, is_mirror, is_terminal
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.log import get_logger
from sampan.kubelet.contracts.resize_state import InProgress
from sampan.kubelet.contracts.runtime import ObservedPod
from sampan.kubelet.contracts.spec import grace_seconds_of
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.pods import fit, preempt
from sampan.kubelet.pods.allocation import DEFERRED, resize_text, turn, why_not
from sampan.kubelet.pods.parts import PodState
from sampan.kubelet.pods.pod_config import PodConfig, PodOperation, PodUpdate, merge
from sampan.kubelet.pods.pod_state import Cause
from sampan.kubelet.pods.pod_workers import NOBODY, End, PodWorkers
from sampan.kubelet.pods.preempt import PREEMPTED
from sampan.kubelet.status.recorder import PodEvents

log = get_logger(__name__)

# As upstream: what nobody claims gets no time to say goodbye.
ORPHAN_GRACE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NodeView:
    """How the node stands. `refetch` reads it from the API and calls back; None: there is none.
    `goes_on`: a pod that was here before, as its status says, and needs nothing."""

    room: Callable[[], fit.NodeRoom]
    refetch: Callable[[Callable[[], None]], None] | None = None
    goes_on: Callable[[Obj], bool] | None = None
    # What of the node's devices is held, by resource, for a pod that holds some.
    least: Callable[[str], Mapping[str, int]] = lambda _uid: {}


class SyncLoop:
    def __init__(
        self,
        *,
        sources: PodConfig,
        workers: PodWorkers,
        records: PodState,
        events: PodEvents,
        node: NodeView,
        clock: Clock,
    ) -> None:
        self._workers, self._status_manager, self._events = workers, records.status_manager, events
        self._mirrors, self._allocations = records.mirrors, records.allocations
        self._room, self._clock = node.room, clock
        self._least = node.least
        self._requests: dict[str, tuple[Obj, Mapping[str, Quantity]]] = {}  # by uid
        self._wanted = sources
        self._refetch_node, self._goes_on = node.refetch, node.goes_on
        self._doubted: dict[str, Obj] = {}  # refused by a Node that may have changed since, by uid

    def all_ready(self) -> bool:
        return self._wanted.all_ready()

    def wanted_uids(self) -> set[str]:
        """By any source."""
        return {uid for wanted in self._wanted.values() for uid in wanted.pods}

    def deliver(self, source: str, pods: Sequence[Obj]) -> None:
        """A source's whole set, as it is now."""
        now, was_ready = self._clock.now(), self.all_ready()
        merged = merge(self._wanted[source], pods, time_text(now))
        self._wanted[source] = merged.wanted
        for pod, why in merged.refused:
            log.warning("pod was refused", pod=key_of(pod), source=source, why=why)
            self._events.warning(pod, "FailedValidation", f"Error validating pod: {why}")
        for change in merged.changes:
            self._dispatch(change, now)
        if self.all_ready() and not was_ready:
            self._mirrors.sweep()
            self._allocations.keep_only(self.wanted_uids())
        if self._allocations.pending and merged.changes:
            self._retry_resizes()

    def look_for_orphans(self, found: Sequence[ObservedPod]) -> None:
        """What the runtime has and no source wants has to go."""
        if not self.all_ready():
            return
        for pod in found:
            if pod.uid not in self._workers:
                log.info(
                    "orphaned pod found, terminating it",
                    pod=f"{pod.namespace}/{pod.name}",
                    uid=pod.uid,
                )
                self._workers.adopt_orphan(_pod_of(pod), ORPHAN_GRACE_SECONDS)
            elif any(sandbox.ready for sandbox in pod.sandboxes):
                # A start that was cancelled may still have succeeded, after its pod had ended.
                self._workers.end_again(pod.uid)

    def _dispatch(self, change: PodUpdate, now: float) -> None:
        pod = change.pod
        if is_mirror(pod):
            self._dispatch_mirror(change)
            return
        if (
            self._doubted.pop(uid_of(pod), None) is not None
            and change.kind is not PodOperation.REMOVE
        ):
            self._admit(pod, now)
            return
        match change.kind:
            case PodOperation.ADD:
                self._admit(pod, now)
            case PodOperation.UPDATE:
                self._status_manager.seen(pod)
                self._consider_resize(pod)
                self._workers.want(pod, now)
            case PodOperation.DELETE:
                self._status_manager.seen(pod)
                self._workers.want(pod, now, End(Cause.DELETED, grace_seconds_of(pod)))
            case PodOperation.REMOVE:
                self._status_manager.forget(uid_of(pod))
                # Until it has ended it holds what it was given, not what it asked for last.
                self._workers.update(self._allocations.applied(pod))
                self._allocations.forget(uid_of(pod))
                self._requests.pop(uid_of(pod), None)
                self._workers.remove(uid_of(pod), grace_seconds_of(pod))
            case PodOperation.RECONCILE:
                self._status_manager.seen(pod)
                self._workers.update(pod)
                if spec_of(pod).get("readinessGates"):
                    self._workers.wake(uid_of(pod))

    def _dispatch_mirror(self, change: PodUpdate) -> None:
        """The reflection of a static pod."""
        if change.kind is PodOperation.REMOVE:
            self._mirrors.gone(change.pod)
        else:
            self._mirrors.seen(change.pod)

    def _admit(self, pod: Obj, now: float, *, sure: bool = False) -> None:
        """Start a new pod, or end it at once. `sure`: the Node was just read."""
        if is_deleted(pod):
            self._workers.want(pod, now, End(Cause.DELETED, _grace_left(pod, now)))
            return
        if is_terminal(pod):
            self._workers.want(pod, now, End(Cause.COMPLETED, grace_seconds_of(pod)))
            return
        if self._goes_on is not None and self._goes_on(pod):
            self._allocations.give(pod)
            self._workers.resume(pod, now)
            return
        # After a restart of the agent, what it was given before is the truth.
        admitted, victims = self._allocations.applied(pod), set[str]()
        verdict = self._refusal(admitted, victims)
        if verdict is not None:
            if not sure and self._refetch_node is not None and fit.depends_on_node(verdict):
                self._doubt(pod)
            else:
                self._workers.want(pod, now, self._refused(pod, verdict))
            return
        self._allocations.give(admitted)
        self._consider_resize(pod)
        # As upstream: what had to go for it is gone before anything of it starts.
        self._workers.want(pod, now, None, frozenset(victims) if victims else NOBODY)

    def _doubt(self, pod: Obj) -> None:
        """The scheduler may have heard of a label, taint or resource before us: look again."""
        assert self._refetch_node is not None
        if not self._doubted:
            self._refetch_node(self._settle_doubts)
        self._doubted[uid_of(pod)] = pod

    def _settle_doubts(self) -> None:
        doubted, self._doubted = self._doubted, {}
        for pod in doubted.values():
            self._admit(pod, self._clock.now(), sure=True)

    def _refused(self, pod: Obj, verdict: Verdict) -> End:
        message = verdict.message.removeprefix("Pod was rejected: ")
        self._events.warning(pod, verdict.reason, message)
        return End(Cause.REJECTED, grace_seconds_of(pod), verdict)

    def _refusal(self, pod: Obj, victims: set[str]) -> Verdict | None:
        """A critical pod may make room for itself."""
        others, room = self._holding(), self._room_for(pod)
        verdict = fit.refusal(pod, others, room, self._requests_of)
        if verdict is None or not is_critical(pod) or fit.lacking(pod, others, room) is None:
            return verdict
        chosen = preempt.victims(pod, others, room)
        if chosen is None:
            return verdict
        gone = {uid_of(item) for item in chosen}
        verdict = fit.refusal(pod, [other for other in others if uid_of(other) not in gone], room)
        if verdict is None:
            for victim in chosen:
                self._events.warning(victim, PREEMPTED.reason, PREEMPTED.message)
                grace = grace_seconds_of(victim)
                self._workers.kill(uid_of(victim), grace, Cause.EVICTED, PREEMPTED)
                victims.add(uid_of(victim))
        return verdict

    def _room_for(self, pod: Obj) -> fit.NodeRoom:
        """As upstream: what a pod holds already it still finds, whatever the node offers now."""
        room, least = self._room(), self._least(uid_of(pod))
        if not least:
            return room
        held = {
            name: str(max(amount, value_of(room.allocatable.get(name, "0")).value()))
            for name, amount in least.items()
        }
        return replace(room, allocatable={**room.allocatable, **held})

    def _requests_of(self, pod: Obj) -> Mapping[str, Quantity]:
        """Remembered: every new pod is weighed against all that are here."""
        uid = pod["metadata"]["uid"]
        known = self._requests.get(uid)
        if known is None or known[0] is not pod.get("spec"):
            known = self._requests[uid] = (spec_of(pod), fit.shared_requests(pod))
        return known[1]

    def _holding(self) -> list[Obj]:
        """The pods that hold resources, with what they were given."""
        return self._allocations.applied_to(self._workers.active_pods())

    # In-place resize.

    def _consider_resize(self, pod: Obj) -> None:
        """Does the pod ask for something else than it was given, and may it have that?"""
        uid, allocations = uid_of(pod), self._allocations
        if allocations.applied(pod) is pod:
            allocations.pending.pop(uid, None)
            return
        others = [item for item in self._holding() if uid_of(item) != uid]
        pending = why_not(pod, others, self._room(), allocations.of(uid))
        if pending is None:
            allocations.give(pod)
            allocations.pending.pop(uid, None)
            generation = int(meta_of(pod).get("generation") or 0)
            allocations.in_progress[uid] = InProgress(generation)
            started = f"Pod resize started: {resize_text(pod, generation)}"
            self._events.normal(pod, "ResizeStarted", started)
        elif allocations.pending.get(uid) != pending:
            allocations.pending[uid] = pending
            text = resize_text(pod, pending.generation, pending.message)
            message = f"Pod resize {pending.reason}: {text}"
            self._events.warning(pod, f"Resize{pending.reason}", message)

    def _retry_resizes(self) -> None:
        """Something changed on the node: what was deferred may be possible by now."""
        allocations = self._allocations
        waiting = [
            pod
            for uid, pending in allocations.pending.items()
            if pending.reason == DEFERRED and (pod := self._workers.pod(uid)) is not None
        ]
        for pod in sorted(waiting, key=lambda pod: turn(pod, allocations.applied(pod))):
            self._consider_resize(pod)
            if uid_of(pod) not in allocations.pending:
                self._workers.wake(uid_of(pod))


def _grace_left(pod: Obj, now: float) -> float:
    """Deletion was asked for before we came: part of its grace is used up. The timestamp is the
    moment at which it runs out."""
    try:
        left = seconds_of(meta_of(pod)["deletionTimestamp"]) - now
    except ValueError:
        left = 0.0
    return max(0.0, min(grace_seconds_of(pod), left))


def _pod_of(observed: ObservedPod) -> Obj:
    """As much of a Pod as the runtime remembers."""
    names = dict.fromkeys(container.name for container in observed.containers)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": observed.name, "namespace": observed.namespace, "uid": observed.uid},
        "spec": {"containers": [{"name": name} for name in names]},
    }
