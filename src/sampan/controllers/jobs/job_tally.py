"""What a Job has achieved: its pods and its status folded into one count.

Job: active, failed, succeeded, per index where it has indexes; which pods may lose their finalizer.
    Pure.
Invariant: a finished pod is counted once: it is listed in the status (by uid, or by its index)
    before it loses its finalizer, and moves into the counters after it has lost it.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, annotations_of, is_deleted, meta_of, uid_of
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_indexes import parse_indexes
from sampan.controllers.jobs.job_policy import Judgement, Verdict, judged
from sampan.controllers.workloads.pod_control import is_active, is_terminating
from sampan.core.fast_dataclass import dataclass

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"


@dataclass(frozen=True, slots=True)
class Tally:
    active: Sequence[Obj]
    terminating: int
    ready: int
    succeeded: int  # as the status will say: counted for good
    failed: int
    uncounted_succeeded: tuple[str, ...]  # uids in between
    uncounted_failed: tuple[str, ...]
    completed_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    releasable: Sequence[Obj]  # finished, listed in the stored status, finalizer still on
    fatal: Judgement | None  # a failure that fails the whole Job

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted_succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted_failed)


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def completions_of(job: Obj) -> int | None:
    completions = job["spec"].get("completions")
    return None if completions is None else int(completions)


def index_of(pod: Obj) -> int:
    """The pod's completion index; -1 where it has none."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def has_finalizer(pod: Obj) -> bool:
    return FINALIZER in (meta_of(pod).get("finalizers") or ())


def replaces_only_failed(job: Obj) -> bool:
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or bool(spec.get("podFailurePolicy"))


def is_failed(job: Obj, pod: Obj) -> bool:
    phase = pod_facts.phase(pod)
    if phase == "Failed":
        return True
    # One that is being deleted may never get to say that it failed.
    return is_deleted(pod) and phase != "Succeeded" and not replaces_only_failed(job)


def tally(job: Obj, pods: Sequence[Obj]) -> Tally:
    status: Obj = job.get("status") or {}
    stored = status.get("uncountedTerminatedPods") or {}
    tracked = {uid_of(pod): pod for pod in pods if has_finalizer(pod)}
    limit = completions_of(job) or 0
    stored_completed = parse_indexes(status.get("completedIndexes"), limit)
    succeeded = [pod for pod in tracked.values() if pod_facts.phase(pod) == "Succeeded"]
    failed = [pod for pod in tracked.values() if is_failed(job, pod)]
    judgements = {uid_of(pod): judged(job, pod) for pod in failed}
    counting = [pod for pod in failed if judgements[uid_of(pod)].verdict is not Verdict.IGNORE]
    left_succeeded, flushed_succeeded = _split(stored.get("succeeded") or (), tracked)
    left_failed, flushed_failed = _split(stored.get("failed") or (), tracked)
    indexed = is_indexed(job)
    completed = stored_completed | {
        index_of(pod) for pod in succeeded if index_of(pod) in range(limit)
    }
    new_succeeded = () if indexed else _new(succeeded, left_succeeded)
    failed_indexes = _failed_indexes(job, pods, counting, judgements, limit) - completed
    active = [pod for pod in pods if is_active(pod)]
    counted = len(completed) if indexed else int(status.get("succeeded") or 0) + flushed_succeeded
    listed = {*left_succeeded, *left_failed}
    last = _last_tries(job, pods)
    return Tally(
        active=active,
        terminating=sum(is_terminating(pod) for pod in pods),
        ready=sum(pod_facts.is_ready(pod) for pod in active),
        succeeded=counted,
        failed=int(status.get("failed") or 0) + flushed_failed,
        uncounted_succeeded=(*left_succeeded, *new_succeeded),
        uncounted_failed=(*left_failed, *_new(counting, left_failed)),
        completed_indexes=completed if indexed else frozenset(),
        failed_indexes=failed_indexes,
        releasable=[
            pod
            for pod in (*succeeded, *failed)
            if _is_settled(job, pod, last, listed, stored_completed, judgements, failed_indexes)
        ],
        fatal=next((one for one in judgements.values() if one.verdict is Verdict.FAIL_JOB), None),
    )


def failures_of_index(pod: Obj) -> int:
    """How often this pod's index had failed before the pod was made."""
    text = annotations_of(pod).get(INDEX_FAILURES, "0")
    return int(text) if text.isdigit() else 0


def _split(uids: Iterable[str], tracked: dict[str, Obj]) -> tuple[tuple[str, ...], int]:
    """Those whose pod still has its finalizer, and the number of those that are now counted."""
    listed = tuple(uids)
    left = tuple(uid for uid in listed if uid in tracked)
    return left, len(listed) - len(left)


def _new(pods: Sequence[Obj], listed: Sequence[str]) -> tuple[str, ...]:
    known = set(listed)
    return tuple(uid_of(pod) for pod in pods if uid_of(pod) not in known)


def _failed_indexes(
    job: Obj,
    pods: Sequence[Obj],
    failed: Sequence[Obj],
    judgements: dict[str, Judgement],
    completions: int,
) -> frozenset[int]:
    limit = job["spec"].get("backoffLimitPerIndex")
    if limit is None:
        return frozenset()
    found = set(parse_indexes((job.get("status") or {}).get("failedIndexes"), completions))
    for pod in failed:
        too_often = failures_of_index(pod) >= limit
        if too_often or judgements[uid_of(pod)].verdict is Verdict.FAIL_INDEX:
            found.add(index_of(pod))
    return frozenset(one for one in found if 0 <= one < completions)


def _is_settled(
    job: Obj,
    pod: Obj,
    last: dict[int, int],
    listed: set[str],
    completed: frozenset[int],
    judgements: dict[str, Judgement],
    failed_indexes: frozenset[int],
) -> bool:
    """Whether the stored status already knows of this pod, so that its finalizer can go."""
    uid, index = uid_of(pod), index_of(pod)
    if is_indexed(job) and pod_facts.phase(pod) == "Succeeded":
        return index in completed or index not in range(completions_of(job) or 0)
    judgement = judgements.get(uid)
    if judgement is not None and judgement.verdict is Verdict.IGNORE:
        return True
    if uid not in listed:
        return False
    if job["spec"].get("backoffLimitPerIndex") is None or index in failed_indexes | completed:
        return True
    # The last failed pod of an index carries the count: it stays until there is a next one.
    return last.get(index, 0) > failures_of_index(pod)


def _last_tries(job: Obj, pods: Sequence[Obj]) -> dict[int, int]:
    """Index → how often it had failed before its newest pod; only where that is limited."""
    found: dict[int, int] = {}
    if job["spec"].get("backoffLimitPerIndex") is None:
        return found
    for pod in pods:
        index = index_of(pod)
        found[index] = max(found.get(index, 0), failures_of_index(pod))
    return found
