"""Jobs: pods that run to completion, each counted exactly once.

Job: decide which pods to make and to delete, when the Job has succeeded or failed, and what its
    status says.
Invariant: no completion is lost or counted twice: see job_tally.
Invariant: a finished Job makes no more pods and never changes its verdict.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from sampan.api.errors import Conflict, NotFound
from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    key_of,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from sampan.api.resources import JOBS, PODS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import ANYTHING, DELETION, OFFERED, OWNERS, looks_at
from sampan.client.label_index import ORPHANS, SELECTOR, by_labels_of_orphan, by_selector
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Delete,
    Outcome,
    Patch,
    Plan,
    deletion,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, Later, View, own_key
from sampan.controllers.jobs.job_backoff import NO_FAILURES, BackoffRecord, backoff_record
from sampan.controllers.jobs.job_ending import (
    COMPLETED,
    Ending,
    ending_of,
    is_complete,
    is_finished,
    seconds_to_deadline,
)
from sampan.controllers.jobs.job_metrics import job_counting
from sampan.controllers.jobs.job_pod_facts import FINALIZER, has_finalizer
from sampan.controllers.jobs.job_pods import Wanted, wanted_pods
from sampan.controllers.jobs.job_status import (
    Progress,
    final_events,
    final_status,
    interim_status,
    suspension_events,
    with_counters,
)
from sampan.controllers.jobs.job_tally import Counted, Tally, Tracking, tally, track
from sampan.controllers.workloads.adoption import claims, controllers_of, may_adopt
from sampan.controllers.workloads.pod_control import is_terminating, pod_events
from sampan.core.fast_dataclass import dataclass

CONTROLLER = "kubernetes.io/job-controller"
# As upstream gathers changes of pods: one that was told to stop may end by itself in this time, and
# then counts as what it ended with.
GATHER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class OrphanPod:
    """The key of a pod that has the tracking finalizer and no controller."""

    key: str


def job_controller() -> Controller:
    return Controller(
        name="job-controller",
        component="job-controller",
        aliases=("job",),
        wakes={JOBS: own_key, PODS: _job_of_pod},
        planned=_Jobs().plan_key,
        indices={
            PODS: {"job": _by_job, ORPHANS: by_labels_of_orphan},
            JOBS: {SELECTOR: by_selector},
        },
        counted=job_counting,
    )


def plan(
    job: Obj, pods: Sequence[Obj], now: float, record: BackoffRecord = NO_FAILURES
) -> tuple[Plan, BackoffRecord]:
    """Pods first; then the status lists who ended; then those lose their finalizer; then they are
    counted for good."""
    if job["spec"].get("managedBy") not in (None, CONTROLLER):
        return NOTHING, NO_FAILURES
    if is_finished(job):
        return Plan([finalizer_removal(pod) for pod in pods if has_finalizer(pod)]), NO_FAILURES
    found = tally(job, pods)
    record = backoff_record(record, found)
    ending = ending_of(job, found, now)
    if ending is not None:
        wanted = Wanted(delete=found.active)
    else:
        wanted = Wanted() if is_deleted(job) else wanted_pods(job, found, record, now)
    actions: list[Action] = [Create(PODS, pod) for pod in wanted.create]
    if ending is None:
        # What is taken back is counted by nobody.
        actions += [finalizer_removal(pod) for pod in wanted.delete if has_finalizer(pod)]
    actions += [deletion(PODS, pod, propagation=None) for pod in wanted.delete]

    def listed(outcomes: Sequence[Outcome]) -> Plan:
        return _Accounting(job, found, now).listed(ending, wanted, outcomes)

    return Plan(actions, listed, _again(job, wanted, now)), record


@dataclass(frozen=True, slots=True)
class _Accounting:
    """What follows when the pods were seen to."""

    job: Obj
    found: Tally
    now: float

    def listed(self, ending: Ending | None, wanted: Wanted, outcomes: Sequence[Outcome]) -> Plan:
        job, found = self.job, self.found
        progress = _progress(found, wanted, outcomes)
        if ending is not None and progress.active > 0:
            ending = None  # not all could be told to stop: there is no verdict yet
            managed = False
        else:
            managed = ending is None and not is_deleted(job)
        if managed or (ending is None and is_deleted(job)):
            ending = COMPLETED if is_complete(job, found, progress.active) else None
        failed = ending is not None and ending.failed
        tracking = track(job, found, over=ending is not None, failed=failed)
        bare = interim_status(job, progress, ending, managed=managed, now=self.now)
        status = self._counted(bare, tracking, tracking.counted)
        patch = status_patch(JOBS, job, status)
        actions: list[Action] = [*pod_events(job, outcomes)]
        actions += [patch] if patch is not None else []
        actions += suspension_events(job, status)

        def released(outcomes: Sequence[Outcome]) -> Plan:
            if any(outcome.error is not None for outcome in outcomes):
                return NOTHING
            removals = [finalizer_removal(pod) for pod in tracking.released]
            return Plan(removals, lambda done: self._finished(bare, status, tracking, ending, done))

        return Plan(actions, released)

    def _finished(
        self,
        bare: Obj,
        status: Obj,
        tracking: Tracking,
        ending: Ending | None,
        outcomes: Sequence[Outcome],
    ) -> list[Action]:
        gone = [
            uid_of(pod)
            for pod, outcome in zip(tracking.released, outcomes, strict=False)
            if outcome.error is None
        ]
        tracked = {uid_of(pod) for pod in self.found.pods if has_finalizer(pod)}.difference(gone)
        counted = tracking.counted.without_finalizers_of(tracked.__contains__)
        final = self._counted(bare, tracking, counted)
        all_gone = len(gone) == len(tracking.released) and tracking.is_whole
        events: list[Action] = []
        if ending is not None and all_gone and not counted.uncounted() and not bare["terminating"]:
            final = final_status(final, ending, self.now)
            events = final_events(self.job, final, ending)
        patch = status_patch(JOBS, {**self.job, "status": status}, final)
        return [patch, *events] if patch is not None else events

    def _counted(self, bare: Obj, tracking: Tracking, counted: Counted) -> Obj:
        completed, failed = tracking.completed_indexes, self.found.failed_indexes
        return with_counters(self.job, bare, counted, completed, failed)


def _progress(found: Tally, wanted: Wanted, outcomes: Sequence[Outcome]) -> Progress:
    done = [outcome.action for outcome in outcomes if outcome.error is None]
    made = sum(isinstance(action, Create) for action in done)
    stopped = {action.uid for action in done if isinstance(action, Delete)}
    ready = sum(pod_facts.is_ready(pod) for pod in wanted.delete if uid_of(pod) in stopped)
    return Progress(
        active=len(found.active) + made - len(stopped),
        ready=found.ready - ready,
        terminating=found.terminating + len(stopped),
    )


def finalizer_removal(pod: Obj) -> Patch:
    meta = {"uid": uid_of(pod), "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    patch = {"metadata": meta}
    return Patch(
        PODS, namespace_of(pod), name_of(pod), patch, "strategic", settled=(NotFound, Conflict)
    )


def _again(job: Obj, wanted: Wanted, now: float) -> float | None:
    times = [wanted.again_seconds, seconds_to_deadline(job, now)]
    coming = [time_ for time_ in times if time_ is not None and time_ > 0]
    return min(coming) if coming else None


class _Jobs:
    """What is remembered between two plans: how long failures hold up each Job's next pod."""

    def __init__(self) -> None:
        self._records: dict[str, BackoffRecord] = {}

    async def plan_key(self, view: View, key: str | OrphanPod) -> Plan:
        if isinstance(key, OrphanPod):
            return _plan_orphan(view, key)
        job = view.cache(JOBS).get(key)
        pods = view.cache(PODS).by("job", key)
        if job is None:
            self._records.pop(key, None)
            if not any(has_finalizer(pod) for pod in pods) or await _exists(view, key):
                return NOTHING
            return Plan([finalizer_removal(pod) for pod in pods if has_finalizer(pod)])
        mine: list[Obj] = []
        strangers: list[Obj] = []
        for pod in pods:
            ours = (controller_of(pod) or {}).get("uid") == uid_of(job)
            (mine if ours else strangers).append(pod)
        # Pods of an earlier Job of this name: nobody will ever count them.
        held = [finalizer_removal(pod) for pod in strangers if has_finalizer(pod)]
        if held:
            return Plan(held, again_seconds=0.0)
        if not is_finished(job):
            claimed = await claims(view, JOBS, job, mine, (FINALIZER,))
            if claimed:
                return Plan(claimed)
        found, record = plan(job, mine, view.now, self._records.get(key, NO_FAILURES))
        self._remember(key, record)
        return found

    def _remember(self, key: str, record: BackoffRecord) -> None:
        if record == NO_FAILURES:
            self._records.pop(key, None)
        else:
            self._records[key] = record


def _plan_orphan(view: View, orphan: OrphanPod) -> Plan:
    pod = view.cache(PODS).get(orphan.key)
    if pod is None or not has_finalizer(pod) or controller_of(pod) is not None:
        return NOTHING
    # Unless somebody has adopted it meanwhile.
    removal = finalizer_removal(pod)
    meta = {**removal.patch["metadata"], "resourceVersion": str(revision_of(pod))}  # type: ignore[call-overload]  # a dict
    return Plan([replace(removal, patch={"metadata": meta})])


async def _exists(view: View, key: str) -> bool:
    namespace, _, name = key.partition("/")
    try:
        await view.client.get(JOBS, namespace, name)
    except NotFound:
        return False
    return True


@looks_at(OWNERS)
def _by_job(pod: Obj) -> Iterable[str]:
    controller = controller_of(pod)
    if controller is None or controller.get("kind") != JOBS.kind:
        return ()
    return (f"{namespace_of(pod)}/{controller.get('name', '')}",)


@looks_at(ANYTHING, controller=JOBS.kind, orphans=OFFERED | DELETION)
def _job_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Hashable]:
    keys = {*controllers_of(JOBS.kind, old, new), *may_adopt(caches, JOBS, old, new)}
    if new is None:
        return keys
    if controller_of(new) is None and has_finalizer(new):
        return {OrphanPod(key_of(new)), *keys}
    return {Later(key, GATHER_SECONDS) for key in keys} if is_terminating(new) else keys
