"""Pod workers: one step at a time per pod uid, the newest update first.

Job: own every pod's Worker; start, interrupt, repeat and end its steps.
Invariant: at most one step runs per uid; an idle pod has neither a task nor a timer.
Invariant: two pods of one full name never sync at the same time.
Invariant: a pod that is not finished is never forgotten.
Owner: SyncLoop tells it what is wanted; the steps themselves are performed by PodSync.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Protocol

from sampan.api.objects import Obj, is_deleted, key_of, uid_of
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.context import LANE
from sampan.kubelet.contracts.verdict import Verdict, Waiting
from sampan.kubelet.pods import pod_state
from sampan.kubelet.pods.pod_state import Cause, Phase, Worker

log = get_logger(__name__)

RETRY = Backoff(first_seconds=0.5, cap_seconds=10.0)
JITTER = 0.5
NOBODY: frozenset[str] = frozenset()
OPERATIONS = {
    Phase.SYNCING: "sync",
    Phase.TERMINATING: "terminating",
    Phase.TERMINATED: "terminated",
}


@dataclass(frozen=True, slots=True)
class Job:
    """What a step is told."""

    pod: Obj
    worker: Worker
    first_seen: float
    first: bool  # nothing was done for this pod yet
    gone: bool  # deleted or removed: nothing of it has to stay
    known: bool  # a source has it, so that its status can be reported
    verdict: Verdict | None
    waiting: Mapping[str, Waiting]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step found out."""

    failed: bool = False  # try again after a pause
    terminal: bool = False  # the pod is over: end it
    verdict: Verdict | None = None  # the node itself ends it …
    cause: Cause = Cause.EVICTED  # … because of this
    wake_after: float | None = None  # look again then, even if nothing happens
    waiting: Mapping[str, Waiting] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Why and how a pod has to end."""

    cause: Cause
    grace_seconds: float
    verdict: Verdict | None = None


class Steps(Protocol):
    async def sync(self, job: Job) -> Outcome: ...

    async def terminate(self, job: Job) -> Outcome: ...

    async def clean_up(self, job: Job) -> Outcome: ...


@dataclass(slots=True)
class _Slot:
    uid: str
    pod: Obj
    first_seen: float
    worker: Worker = field(default_factory=Worker)
    known: bool = True
    removed: bool = False
    ran: bool = False
    cleaned: bool = False  # the last clean-up already removed everything
    verdict: Verdict | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    failures: int = 0
    again: bool = False
    retry: bool = False  # asked for while a step runs: it may not have seen why
    after: frozenset[str] = NOBODY  # uids whose containers must have ended before it starts
    step: asyncio.Task[Outcome] | None = None
    timer: asyncio.TimerHandle | None = None


class PodWorkers:
    def __init__(self, *, tasks: Tasks, clock: Clock, metrics: Metrics, rng: random.Random) -> None:
        """`steps` is set before the first pod comes: who carries them out also wakes workers."""
        self.steps: Steps
        self._tasks, self._clock, self._rng, self._traces = tasks, clock, rng, metrics.traces
        self._slots: dict[str, _Slot] = {}
        self._names: dict[str, list[str]] = {}  # full name → uids, in order of arrival
        self._closed = False
        self._held: set[str] = set()  # pods that start after others have ended
        self._watchers: list[asyncio.Future[None]] = []  # whoever waits for pods to end
        self._start_seconds = metrics.histogram(
            "kubelet_pod_worker_start_duration_seconds",
            "Duration in seconds from kubelet seeing a pod to starting a worker.",
        )
        self._step_seconds = metrics.histogram(
            "kubelet_pod_worker_duration_seconds",
            "Duration in seconds to sync a single pod. Broken down by operation type.",
            ("operation_type",),
        )

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, uid: str) -> bool:
        return uid in self._slots

    def has_name(self, full_name: str) -> bool:
        return full_name in self._names

    def pods(self) -> Iterator[Obj]:
        return (slot.pod for slot in self._slots.values() if slot.known)

    def pod(self, uid: str) -> Obj | None:
        slot = self._slots.get(uid)
        return slot.pod if slot else None

    def phase(self, uid: str) -> Phase | None:
        slot = self._slots.get(uid)
        return slot.worker.phase if slot else None

    def active_pods(self) -> list[Obj]:
        """Pods that hold resources of the node: admitted, and not yet without containers."""
        return [
            slot.pod
            for slot in self._slots.values()
            if slot.worker.phase < Phase.TERMINATED and slot.verdict is None
        ]

    def is_idle(self) -> bool:
        """No step runs (timers may be set)."""
        return all(slot.step is None for slot in self._slots.values())

    # What may happen to a pod.

    def want(
        self,
        pod: Obj,
        first_seen: float,
        end: End | None = None,
        after: frozenset[str] = NOBODY,
    ) -> None:
        """The pod is new, or its newest version is this one. `end`: it has to end, and nothing
        of it may be started. `after`: it starts when these have ended."""
        uid = uid_of(pod)
        slot = self._slots.get(uid)
        if slot is None:
            slot = self._slots[uid] = _Slot(uid, pod, first_seen, after=after)
            if after:
                self._held.add(uid)
            self._names.setdefault(key_of(pod), []).append(uid)
        elif slot.removed:
            slot.worker = pod_state.recreated(slot.worker)
        slot.pod = pod
        if slot.worker.phase is Phase.FINISHED and is_deleted(pod):
            slot.cleaned = False
        if end is not None:
            self.kill(uid, end.grace_seconds, end.cause, end.verdict)
            return
        self._go_on(slot)

    def resume(self, pod: Obj, first_seen: float) -> None:
        """It runs since before we came, and needs no step before something happens to it."""
        uid, name = uid_of(pod), key_of(pod)
        if uid in self._slots or name in self._names:
            self.want(pod, first_seen)
            return
        worker = pod_state.started(Worker())
        self._slots[uid] = _Slot(uid, pod, first_seen, worker, ran=True)
        self._names[name] = [uid]

    def update(self, pod: Obj) -> None:
        """Only the status differs: a running pod needs no step for that."""
        slot = self._slots.get(uid_of(pod))
        if slot is not None:
            slot.pod = pod

    def kill(
        self, uid: str, grace_seconds: float, cause: Cause, verdict: Verdict | None = None
    ) -> None:
        slot = self._slots.get(uid)
        if slot is None:
            return
        if slot.worker.phase < Phase.TERMINATED and slot.verdict is None:
            slot.verdict = verdict
        self._become(slot, pod_state.killed(slot.worker, grace_seconds, cause))
        self._go_on(slot)

    def remove(self, uid: str, grace_seconds: float) -> None:
        """The pod is gone from its source; what is left of it has to go."""
        slot = self._slots.get(uid)
        if slot is None:
            return
        slot.removed = True
        if slot.worker.phase is Phase.FINISHED and slot.cleaned:
            self._finished(slot)
            return
        self.kill(uid, grace_seconds, Cause.REMOVED)

    def adopt_orphan(self, pod: Obj, grace_seconds: float) -> None:
        """Something runs that no source knows: end it. `pod` is all that the runtime can tell."""
        uid = uid_of(pod)
        if uid in self._slots:
            return
        slot = self._slots[uid] = _Slot(uid, pod, self._clock.now(), known=False, removed=True)
        self._names.setdefault(key_of(pod), []).append(uid)
        self.kill(slot.uid, grace_seconds, Cause.ORPHANED)

    def end_again(self, uid: str) -> None:
        """Something of a pod that has ended was found running: end it once more."""
        slot = self._slots.get(uid)
        if slot is None or slot.step is not None or slot.worker.phase is not Phase.FINISHED:
            return
        log.info(
            "terminated pod has running containers, stopping them", pod=key_of(slot.pod), uid=uid
        )
        slot.worker, slot.cleaned = pod_state.resurfaced(slot.worker), False
        self._go_on(slot)

    async def ended(self, uids: Iterable[str]) -> None:
        """Returns when no container of these pods runs any more."""
        waiting = set(uids)
        while any(not self._has_ended(uid) for uid in waiting):
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    def wake(self, uid: str) -> None:
        """Something happened to the pod: look at it now."""
        slot = self._slots.get(uid)
        if slot is not None:
            self._go_on(slot)

    def retry(self, uid: str) -> None:
        """What a step of this pod missed is there now: no pause, even if it fails right now."""
        slot = self._slots.get(uid)
        if slot is not None:
            slot.retry = slot.step is not None
            self._go_on(slot)

    def wake_failed(self) -> None:
        """What made steps fail may be over: no pod waits for its pause."""
        for slot in list(self._slots.values()):
            if slot.failures:
                self._go_on(slot)

    def close(self) -> None:
        """No further steps; those that run are stopped by the owner of the tasks."""
        self._closed = True
        for slot in self._slots.values():
            if slot.timer is not None:
                slot.timer.cancel()

    # How the steps follow each other.

    def _become(self, slot: _Slot, worker: Worker) -> None:
        before, slot.worker = slot.worker, worker
        if slot.step is None or not pod_state.interrupts(before, worker):
            return
        # Once: a second time would cut off the call whose end the step is waiting for.
        if not slot.step.cancelling():
            slot.step.cancel()

    def _go_on(self, slot: _Slot) -> None:
        """Start the next step now, or right after the one that runs."""
        if self._closed:
            return
        if slot.step is not None:
            slot.again = True
            return
        if slot.timer is not None:
            slot.timer.cancel()
            slot.timer = None
        if slot.worker.phase is Phase.WAITING:
            if self._has_to_wait(slot):
                return
            slot.worker = pod_state.started(slot.worker)
        if slot.worker.phase is Phase.FINISHED and (slot.cleaned or not self._is_gone(slot)):
            return
        self._start(slot)

    def _has_to_wait(self, slot: _Slot) -> bool:
        uids = self._names[key_of(slot.pod)]
        before = uids[: uids.index(slot.uid)]
        if any(self._slots[uid].worker.phase is not Phase.FINISHED for uid in before):
            return True
        return any(not self._has_ended(uid) for uid in slot.after)

    def _has_ended(self, uid: str) -> bool:
        slot = self._slots.get(uid)
        return slot is None or slot.worker.phase >= Phase.TERMINATED

    def _tell_ended(self) -> None:
        """Whoever waits for the end of a pod looks again."""
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
        for uid in list(self._held):
            other = self._slots.get(uid)
            if other is None or all(self._has_ended(item) for item in other.after):
                self._held.discard(uid)
            if other is not None and other.worker.phase is Phase.WAITING:
                self._go_on(other)

    def _is_gone(self, slot: _Slot) -> bool:
        return slot.removed or is_deleted(slot.pod)

    def _start(self, slot: _Slot) -> None:
        job = Job(
            pod=slot.pod,
            worker=slot.worker,
            first_seen=slot.first_seen,
            first=not slot.ran,
            gone=self._is_gone(slot),
            known=slot.known and not slot.removed,
            verdict=slot.verdict,
            waiting=slot.waiting,
        )
        if not slot.ran:
            slot.ran = True
            waited = max(0.0, self._clock.now() - slot.first_seen)
            self._start_seconds.observe(waited)
            self._traces.span_for(slot.uid, LANE, "pod worker starts", waited)
        slot.again = slot.retry = False
        began = self._clock.monotonic()
        name = f"{job.worker.phase.name.lower()} {key_of(job.pod)}"
        slot.step = self._tasks.start(name, self._perform(job))
        slot.step.add_done_callback(partial(self._ended, slot, job, began))

    async def _perform(self, job: Job) -> Outcome:
        match job.worker.phase:
            case Phase.SYNCING:
                return await self.steps.sync(job)
            case Phase.TERMINATING:
                return await self.steps.terminate(job)
            case _:
                return await self.steps.clean_up(job)

    def _ended(self, slot: _Slot, job: Job, began: float, step: asyncio.Task[Outcome]) -> None:
        slot.step = None
        took, operation = self._clock.monotonic() - began, OPERATIONS.get(job.worker.phase, "sync")
        self._step_seconds.observe(took, operation)
        self._traces.span_for(slot.uid, LANE, f"{operation} pod", took)
        if self._closed:
            return
        if step.cancelled():
            self._go_on(slot)
            return
        # A step that raised is a bug, and was logged as one by Tasks; the pod goes on regardless.
        outcome = Outcome(failed=True) if step.exception() is not None else step.result()
        if outcome.waiting is not None:
            slot.waiting = outcome.waiting
        if outcome.failed:
            self._pause(slot, job)
            return
        slot.failures = 0
        self._fold(slot, job, outcome)

    def _pause(self, slot: _Slot, job: Job) -> None:
        slot.failures += 1
        if slot.worker != job.worker or slot.retry:
            self._go_on(slot)  # something else is asked for, or there, by now
            return
        seconds = with_jitter(RETRY.delay(slot.failures), JITTER, self._rng)
        self._set_timer(slot, seconds)

    def _set_timer(self, slot: _Slot, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        slot.timer = loop.call_later(max(seconds, 0.0), self._due, slot)

    def _due(self, slot: _Slot) -> None:
        slot.timer = None
        self._go_on(slot)

    def _fold(self, slot: _Slot, job: Job, outcome: Outcome) -> None:
        if job.worker.phase is Phase.SYNCING:
            self._synced(slot, job, outcome)
            return
        if slot.worker.phase is not Phase.FINISHED:
            if slot.worker.phase is job.worker.phase:
                slot.worker = pod_state.step_done(slot.worker)
                if slot.worker.phase is Phase.TERMINATED:
                    self._tell_ended()
            if slot.worker.phase is not Phase.FINISHED:
                self._go_on(slot)
                return
            log.debug("pod finished", pod=key_of(slot.pod), uid=slot.uid, cause=slot.worker.cause)
        slot.cleaned = job.gone and not slot.again
        self._finished(slot)

    def _synced(self, slot: _Slot, job: Job, outcome: Outcome) -> None:
        if slot.worker.phase is Phase.SYNCING and (outcome.terminal or outcome.verdict):
            slot.verdict = slot.verdict or outcome.verdict
            cause = outcome.cause if outcome.verdict else Cause.COMPLETED
            grace = self._grace_of_spec(slot)
            self._become(slot, pod_state.killed(slot.worker, grace, cause))
            self._go_on(slot)
        elif slot.again or slot.worker != job.worker:
            self._go_on(slot)
        elif outcome.wake_after is not None:
            self._set_timer(slot, outcome.wake_after)

    def _grace_of_spec(self, slot: _Slot) -> float:
        grace = (slot.pod.get("spec") or {}).get("terminationGracePeriodSeconds")
        return 30.0 if grace is None else float(grace)

    def _finished(self, slot: _Slot) -> None:
        """The next pod of this name may start; what nobody wants any more is forgotten."""
        name = key_of(slot.pod)
        if slot.worker.recreate:
            slot.worker, slot.removed, slot.ran, slot.verdict = Worker(), False, False, None
            self._go_on(slot)
            return
        if slot.removed and slot.cleaned:
            del self._slots[slot.uid]
            self._names[name].remove(slot.uid)
            if not self._names[name]:
                del self._names[name]
        else:
            self._go_on(slot)
        for uid in list(self._names.get(name, ())):
            other = self._slots[uid]
            if other.worker.phase is Phase.WAITING:
                self._go_on(other)
