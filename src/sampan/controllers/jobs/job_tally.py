"""What a Job has achieved: its pods and its status folded into one count.

Job: active, failed, succeeded, per index where it has indexes; which pods lose their finalizer, and
    as what they are counted. Pure.
Invariant: a finished pod is counted once: its uid (or its index) is in the status before it loses
    its finalizer, and moves into the counters after it has lost it; one that was listed as failed
    stays failed, whatever it says in the end.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sampan.api.objects import Obj, is_deleted, uid_of
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_indexes import NO_INDEXES, Indexes, indexes_of, parse_indexes
from sampan.controllers.jobs.job_pod_facts import (
    all_failures_of_index,
    completions_of,
    failures_of_index,
    has_finalizer,
    has_index_limit,
    has_valid_index,
    index_of,
    is_counted_failure,
    is_failed,
    is_indexed,
    is_succeeded,
)
from sampan.controllers.jobs.job_policy import PolicyAction, match_failure_policy
from sampan.controllers.workloads.pod_control import finished_at, is_active, is_terminating
from sampan.core.fast_dataclass import dataclass

# Of uids in one status, as upstream: they stay below 20 KB.
MOST_UNCOUNTED = 500


@dataclass(frozen=True, slots=True)
class Counted:
    """What the status says of finished pods."""

    succeeded: int = 0  # counted for good
    failed: int = 0
    uncounted_succeeded: tuple[str, ...] = ()  # uids whose pod still has its finalizer
    uncounted_failed: tuple[str, ...] = ()

    def without_finalizers_of(self, tracked: Callable[[str], bool]) -> "Counted":
        """Those whose pods lost their finalizer move into the counters."""
        succeeded = tuple(filter(tracked, self.uncounted_succeeded))
        failed = tuple(filter(tracked, self.uncounted_failed))
        return Counted(
            self.succeeded + len(self.uncounted_succeeded) - len(succeeded),
            self.failed + len(self.uncounted_failed) - len(failed),
            succeeded,
            failed,
        )

    def uncounted(self) -> int:
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)


@dataclass(frozen=True, slots=True)
class Tally:
    pods: Sequence[Obj]
    active: Sequence[Obj]
    terminating: int
    ready: int
    counted: Counted  # as the stored status has it
    new_succeeded: Sequence[Obj]  # finished, with their finalizer, and in no list yet
    new_failed: Sequence[Obj]
    succeeded: int  # with all that are not in the counters yet
    failed: int
    completed_indexes: Indexes = NO_INDEXES
    failed_indexes: Indexes = NO_INDEXES
    # By index the failed pod that carries the count of failures until there is a next one.
    delayed: Mapping[int, Obj] | None = None
    fatal: str = ""  # why a failure policy fails the whole Job


def tally(job: Obj, pods: Sequence[Obj]) -> Tally:
    active = [pod for pod in pods if is_active(pod)]
    counted = _counted(job)
    valid = [pod for pod in pods if has_finalizer(pod) and has_valid_index(job, pod)]
    succeeded = _unlisted(filter(is_succeeded, valid), counted)
    failed = [
        pod for pod in valid if is_failed(job, pod) and uid_of(pod) not in counted.uncounted_failed
    ]
    counting = sum(is_counted_failure(job, pod) for pod in failed)
    found = Tally(
        pods=pods,
        active=active,
        terminating=sum(map(is_terminating, pods)),
        ready=sum(map(pod_facts.is_ready, active)),
        counted=counted,
        new_succeeded=succeeded,
        new_failed=failed,
        succeeded=counted.succeeded + len(succeeded) + len(counted.uncounted_succeeded),
        failed=counted.failed + counting + len(counted.uncounted_failed),
        fatal=_fatal(job, pods),
    )
    return _with_indexes(job, found) if is_indexed(job) else found


def _counted(job: Obj) -> Counted:
    status: Obj = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    return Counted(
        int(status.get("succeeded") or 0),
        int(status.get("failed") or 0),
        tuple(uncounted.get("succeeded") or ()),
        tuple(uncounted.get("failed") or ()),
    )


def _unlisted(succeeded: Iterable[Obj], counted: Counted) -> list[Obj]:
    listed = {*counted.uncounted_succeeded, *counted.uncounted_failed}
    return [pod for pod in succeeded if uid_of(pod) not in listed]


def _fatal(job: Obj, pods: Sequence[Obj]) -> str:
    if job["spec"].get("podFailurePolicy") is None:
        return ""
    for pod in pods:
        if is_failed(job, pod):
            found = match_failure_policy(job, pod)
            if found.action is PolicyAction.FAIL_JOB:
                return found.message
    return ""


def _with_indexes(job: Obj, found: Tally) -> Tally:
    status, completions = job.get("status") or {}, completions_of(job) or 0
    before = parse_indexes(status.get("completedIndexes"), completions)
    completed = before | indexes_of(map(index_of, found.new_succeeded))
    found = replace(found, completed_indexes=completed, succeeded=completed.total())
    if not has_index_limit(job):
        return found
    failed = parse_indexes(status.get("failedIndexes"), completions)
    failed |= indexes_of(
        index_of(pod)
        for pod in found.pods
        if has_finalizer(pod) and has_valid_index(job, pod) and _fails_index(job, pod)
    )
    found = replace(found, failed_indexes=failed)
    return replace(found, delayed=_delayed(job, found))


def _fails_index(job: Obj, pod: Obj) -> bool:
    if not is_failed(job, pod):
        return False
    action = match_failure_policy(job, pod).action
    if action is PolicyAction.FAIL_INDEX:
        return True
    limit = int(job["spec"]["backoffLimitPerIndex"])
    return action is not PolicyAction.IGNORE and failures_of_index(pod) >= limit


def _delayed(job: Obj, found: Tally) -> dict[int, Obj]:
    """Of indexes that go on and have no active pod, the last pod that failed."""
    over = found.completed_indexes | found.failed_indexes | indexes_of(map(index_of, found.active))
    delayed: dict[int, Obj] = {}
    for pod in found.pods:
        index = index_of(pod)
        if not has_finalizer(pod) or not has_valid_index(job, pod) or index in over:
            continue
        if is_failed(job, pod):
            last = delayed.get(index)
            if last is None or _follows(pod, last):
                delayed[index] = pod
    return delayed


def _follows(pod: Obj, last: Obj) -> bool:
    return all_failures_of_index(last) <= all_failures_of_index(pod) and (
        finished_at(pod) >= finished_at(last)
    )


@dataclass(frozen=True, slots=True)
class Tracking:
    """Which pods lose their finalizer now, and what the status must say before they do."""

    counted: Counted
    completed_indexes: Indexes
    released: Sequence[Obj]
    is_whole: bool  # else there are more, which wait for the next time


def track(job: Obj, found: Tally, *, over: bool, failed: bool) -> Tracking:
    """`over`: the Job has its verdict, and its active pods were told to stop; `failed` with it."""
    tracked = {uid_of(pod) for pod in found.pods if has_finalizer(pod)}
    counted = found.counted.without_finalizers_of(tracked.__contains__)
    succeeded, lost = list(counted.uncounted_succeeded), list(counted.uncounted_failed)
    indexes: list[int] = []
    released: list[Obj] = []
    going = (pod for pod in _in_order(job, found.pods) if uid_of(pod) in tracked)
    for pod in going:
        if not over and not _is_releasable(job, found, pod):
            continue
        released.append(pod)
        match _counts_as(job, found.counted, pod, failed=failed):
            case "succeeded" if is_indexed(job):
                indexes.append(index_of(pod))
            case "succeeded":
                succeeded.append(uid_of(pod))
            case "failed":
                lost.append(uid_of(pod))
        if len(indexes) + len(succeeded) + len(lost) >= MOST_UNCOUNTED:
            break
    return Tracking(
        replace(counted, uncounted_succeeded=tuple(succeeded), uncounted_failed=tuple(lost)),
        found.completed_indexes | indexes_of(indexes),
        released,
        len(indexes) + len(succeeded) + len(lost) < MOST_UNCOUNTED,
    )


def _counts_as(job: Obj, counted: Counted, pod: Obj, *, failed: bool) -> str:
    """`succeeded`, `failed`, or nothing: it is listed already, or not counted at all. Where the Job
    has failed, whoever did not succeed has failed with it."""
    uid = uid_of(pod)
    listed = uid in counted.uncounted_failed or uid in counted.uncounted_succeeded
    if listed or not has_valid_index(job, pod):
        return ""
    if is_succeeded(pod):
        return "succeeded"
    return "failed" if (failed or is_failed(job, pod)) and is_counted_failure(job, pod) else ""


def _in_order(job: Obj, pods: Sequence[Obj]) -> Sequence[Obj]:
    return sorted(pods, key=index_of) if is_indexed(job) else pods


def _is_releasable(job: Obj, found: Tally, pod: Obj) -> bool:
    if is_deleted(job) or is_succeeded(pod):
        return True
    if not is_failed(job, pod):
        return False
    delayed = (found.delayed or {}).get(index_of(pod))
    return delayed is None or uid_of(delayed) != uid_of(pod)
