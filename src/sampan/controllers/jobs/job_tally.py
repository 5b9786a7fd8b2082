"""What a Job has achieved: its pods and its status folded into one count.

Job: active, failed, succeeded, per index where it has indexes; which pods may lose their finalizer.
    Pure.
Invariant: a finished pod is counted once: it is listed in the status (by uid, or by its index)
    before it loses its finalizer, and moves into the counters after it has lost it.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.objects import Obj, annotations_of, is_deleted, meta_of, uid_of
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_indexes import parse_indexes
from sampan.controllers.jobs.job_policy import Judgement, Verdict, judgement_of
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


@dataclass(frozen=True, slots=True)
class Finished:
    """The pods that ended and are not counted for good: still with their finalizer."""

    succeeded: Sequence[Obj]
    failed: Sequence[Obj]
    judgements: Mapping[str, Judgement]  # of the failed ones, by uid

    def is_ignored(self, pod: Obj) -> bool:
        judgement = self.judgements.get(uid_of(pod))
        return judgement is not None and judgement.verdict is Verdict.IGNORE


@dataclass(frozen=True, slots=True)
class Stored:
    """What the status already says of finished pods, and how far they have got since."""

    succeeded: int  # in the counters, with those that lost their finalizer since
    failed: int
    uncounted_succeeded: tuple[str, ...]  # uids whose pod has its finalizer still
    uncounted_failed: tuple[str, ...]
    completed_indexes: frozenset[int]

    def lists(self, uid: str) -> bool:
        return uid in self.uncounted_succeeded or uid in self.uncounted_failed


def tally(job: Obj, pods: Sequence[Obj]) -> Tally:
    tracked = {uid_of(pod): pod for pod in pods if has_finalizer(pod)}
    finished, stored = _finished_pods(job, tracked.values()), _stored_counts(job, tracked)
    counting = [pod for pod in finished.failed if not finished.is_ignored(pod)]
    completed = stored.completed_indexes | _indexes_below(finished.succeeded, job)
    failed_indexes = _failed_indexes(job, counting, finished.judgements) - completed
    active = [pod for pod in pods if is_active(pod)]
    indexed = is_indexed(job)
    new_succeeded = () if indexed else _new(finished.succeeded, stored.uncounted_succeeded)
    fatal = (found for found in finished.judgements.values() if found.verdict is Verdict.FAIL_JOB)
    return Tally(
        active=active,
        terminating=sum(is_terminating(pod) for pod in pods),
        ready=sum(pod_facts.is_ready(pod) for pod in active),
        succeeded=len(completed) if indexed else stored.succeeded,
        failed=stored.failed,
        uncounted_succeeded=(*stored.uncounted_succeeded, *new_succeeded),
        uncounted_failed=(*stored.uncounted_failed, *_new(counting, stored.uncounted_failed)),
        completed_indexes=completed if indexed else frozenset(),
        failed_indexes=failed_indexes,
        releasable=_releasable(job, pods, finished, stored, failed_indexes),
        fatal=next(fatal, None),
    )


def _finished_pods(job: Obj, tracked: Iterable[Obj]) -> Finished:
    ended = list(tracked)
    failed = [pod for pod in ended if is_failed(job, pod)]
    succeeded = [pod for pod in ended if pod_facts.phase(pod) == "Succeeded"]
    return Finished(succeeded, failed, {uid_of(pod): judgement_of(job, pod) for pod in failed})


def _stored_counts(job: Obj, tracked: Mapping[str, Obj]) -> Stored:
    status: Obj = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    succeeded, more_succeeded = _split(uncounted.get("succeeded") or (), tracked)
    failed, more_failed = _split(uncounted.get("failed") or (), tracked)
    return Stored(
        int(status.get("succeeded") or 0) + more_succeeded,
        int(status.get("failed") or 0) + more_failed,
        succeeded,
        failed,
        parse_indexes(status.get("completedIndexes"), completions_of(job) or 0),
    )


def _indexes_below(pods: Sequence[Obj], job: Obj) -> frozenset[int]:
    """The indexes of these pods, as far as the Job has them."""
    return frozenset(map(index_of, pods)).intersection(range(completions_of(job) or 0))


def failures_of_index(pod: Obj) -> int:
    """How often this pod's index had failed before the pod was made."""
    text = annotations_of(pod).get(INDEX_FAILURES, "0")
    return int(text) if text.isdigit() else 0


def _split(uids: Iterable[str], tracked: Mapping[str, Obj]) -> tuple[tuple[str, ...], int]:
    """Those whose pod still has its finalizer, and the number of those that are now counted."""
    listed = tuple(uids)
    left = tuple(uid for uid in listed if uid in tracked)
    return left, len(listed) - len(left)


def _new(pods: Sequence[Obj], listed: Sequence[str]) -> tuple[str, ...]:
    known = set(listed)
    return tuple(uid_of(pod) for pod in pods if uid_of(pod) not in known)


def _failed_indexes(
    job: Obj, failed: Sequence[Obj], judgements: Mapping[str, Judgement]
) -> frozenset[int]:
    limit, completions = job["spec"].get("backoffLimitPerIndex"), completions_of(job) or 0
    if limit is None:
        return frozenset()
    found = set(parse_indexes((job.get("status") or {}).get("failedIndexes"), completions))
    for pod in failed:
        too_often = failures_of_index(pod) >= limit
        if too_often or judgements[uid_of(pod)].verdict is Verdict.FAIL_INDEX:
            found.add(index_of(pod))
    return frozenset(found).intersection(range(completions))


def _releasable(
    job: Obj,
    pods: Sequence[Obj],
    finished: Finished,
    stored: Stored,
    failed_indexes: frozenset[int],
) -> list[Obj]:
    """Pods that the stored status already knows of, so that their finalizer can go."""
    last, over = _last_tries(job, pods), failed_indexes | stored.completed_indexes

    def is_settled(pod: Obj) -> bool:
        index = index_of(pod)
        if is_indexed(job) and pod_facts.phase(pod) == "Succeeded":
            return index in stored.completed_indexes or not _indexes_below([pod], job)
        if finished.is_ignored(pod):
            return True
        if not stored.lists(uid_of(pod)):
            return False
        if job["spec"].get("backoffLimitPerIndex") is None or index in over:
            return True
        # The last failed pod of an index carries the count: it stays until there is a next one.
        return last.get(index, 0) > failures_of_index(pod)

    return [pod for pod in (*finished.succeeded, *finished.failed) if is_settled(pod)]


def _last_tries(job: Obj, pods: Sequence[Obj]) -> dict[int, int]:
    """Index → how often it had failed before its newest pod; only where that is limited."""
    found: dict[int, int] = {}
    if job["spec"].get("backoffLimitPerIndex") is None:
        return found
    for pod in pods:
        index = index_of(pod)
        found[index] = max(found.get(index, 0), failures_of_index(pod))
    return found
