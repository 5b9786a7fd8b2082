"""The pause that failures impose on a Job's next pod: 10 s, doubled by each, at most 10 minutes.

Job: failures since the last success, folded from newly finished pods; how long is left. Pure.
Invariant: a pod is counted once, also where the status that lists it could not be written.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, uid_of
from sampan.controllers.jobs.job_pod_facts import all_failures_of_index
from sampan.controllers.jobs.job_tally import Tally
from sampan.controllers.workloads.pod_control import finished_at
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass

PAUSE = Backoff(first_seconds=10.0, cap_seconds=600.0)  # as upstream's pod failure backoff


@dataclass(frozen=True, slots=True)
class BackoffRecord:
    failures: int = 0  # since the last success
    last_failure_at: float = 0.0
    seen: frozenset[str] = frozenset()  # uids that are in it, while their pods are there

    def remaining_seconds(self, now: float) -> float:
        return _remaining(self.failures, self.last_failure_at, now)


NO_FAILURES = BackoffRecord()


def backoff_record(before: BackoffRecord, found: Tally) -> BackoffRecord:
    succeeded = _times(found.new_succeeded, before)
    failed = _times(found.new_failed, before)
    seen = frozenset(uid_of(pod) for pod in (*found.new_succeeded, *found.new_failed))
    if not succeeded:
        last = max(failed, default=before.last_failure_at)
        return BackoffRecord(before.failures + len(failed), last, seen)
    later = [moment for moment in failed if moment > max(succeeded)]
    return BackoffRecord(len(later), max(later, default=0.0), seen)


def remaining_seconds_of_index(failed: Obj | None, now: float) -> float:
    """`failed`: the last pod of the index that did."""
    if failed is None:
        return 0.0
    return _remaining(all_failures_of_index(failed) + 1, finished_at(failed), now)


def _times(pods: Sequence[Obj], before: BackoffRecord) -> list[float]:
    return [finished_at(pod) for pod in pods if uid_of(pod) not in before.seen]


def _remaining(failures: int, last_at: float, now: float) -> float:
    return max(0.0, last_at + PAUSE.delay(failures) - now) if failures else 0.0
