"""What one pod of a Job is to it: its index, its failures, whether it failed.

Job: read the annotations and the status of one pod in the light of its Job's spec. Pure.
"""

from sampan.api.objects import Obj, annotations_of, is_deleted, meta_of
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_policy import PolicyAction, match_failure_policy
from sampan.core.digits import number_up_to

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_INDEX_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_MOST = 2**31 - 1


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def completions_of(job: Obj) -> int | None:
    completions = job["spec"].get("completions")
    return None if completions is None else int(completions)


def has_index_limit(job: Obj) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def index_of(pod: Obj) -> int:
    """The pod's completion index; -1 where it has none."""
    return _number(annotations_of(pod).get(INDEX, ""), -1)


def failures_of_index(pod: Obj) -> int:
    """How often this pod's index had failed before the pod was made."""
    return _number(annotations_of(pod).get(INDEX_FAILURES, ""), 0)


def ignored_failures_of_index(pod: Obj) -> int:
    return _number(annotations_of(pod).get(IGNORED_INDEX_FAILURES, ""), 0)


def has_finalizer(pod: Obj) -> bool:
    return FINALIZER in (meta_of(pod).get("finalizers") or ())


def replaces_only_failed(job: Obj) -> bool:
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_failed(job: Obj, pod: Obj) -> bool:
    phase = pod_facts.phase(pod)
    if phase == "Failed":
        return True
    # One that is being deleted may never get to say that it failed.
    return is_deleted(pod) and phase != "Succeeded" and not replaces_only_failed(job)


def is_counted_failure(job: Obj, pod: Obj) -> bool:
    return match_failure_policy(job, pod).action is not PolicyAction.IGNORE


def all_failures_of_index(pod: Obj) -> int:
    return failures_of_index(pod) + ignored_failures_of_index(pod)


def has_valid_index(job: Obj, pod: Obj) -> bool:
    """Also where the Job has none."""
    return not is_indexed(job) or 0 <= index_of(pod) < (completions_of(job) or 0)


def is_succeeded(pod: Obj) -> bool:
    return pod_facts.phase(pod) == "Succeeded"


def _number(text: str, otherwise: int) -> int:
    number = number_up_to(_MOST, text)
    return otherwise if number is None else number
