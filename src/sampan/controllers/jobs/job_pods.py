"""The pods of a Job: how many are wanted now, for which indexes, and what a new one looks like.

Job: from the tally to creations and deletions, or the pause that failures impose. Pure.
Invariant: no more than BURST creations or deletions at once; nothing is as long as a number of the
    spec says.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, meta_of, name_of, seconds_of
from sampan.api.resources import JOBS
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_backoff import BackoffRecord, remaining_seconds_of_index
from sampan.controllers.jobs.job_indexes import indexes_of
from sampan.controllers.jobs.job_pod_facts import (
    FINALIZER,
    IGNORED_INDEX_FAILURES,
    INDEX,
    INDEX_FAILURES,
    completions_of,
    failures_of_index,
    has_index_limit,
    ignored_failures_of_index,
    index_of,
    is_counted_failure,
    is_indexed,
    replaces_only_failed,
)
from sampan.controllers.jobs.job_tally import Tally
from sampan.controllers.workloads.pod_control import (
    controller_reference,
    is_terminating,
    most_restarts,
    phase_rank,
    pod_from_template,
    ready_since,
)
from sampan.core.fast_dataclass import dataclass

BURST = 500
_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
}
LONGEST_GENERATED = 58  # a name of 63 characters without its five random ones


@dataclass(frozen=True, slots=True)
class Wanted:
    create: Sequence[Obj] = ()  # pods, ready to be sent
    delete: Sequence[Obj] = ()
    again_seconds: float | None = None


def wanted_pods(job: Obj, found: Tally, record: BackoffRecord, now: float) -> Wanted:
    active = len(found.active)
    if job["spec"].get("suspend"):
        return Wanted(delete=found.active)
    target = _target(job, found)
    surplus = _surplus(job, found, max(0, active - target))
    if surplus:
        return Wanted(delete=surplus[:BURST])
    terminating = found.terminating if replaces_only_failed(job) else 0
    missing = min(target - terminating - active, BURST)
    if missing <= 0:
        return Wanted()
    if has_index_limit(job):
        return _with_index_pauses(job, found, _open_indexes(job, found, missing), now)
    pause = record.remaining_seconds(now)
    if pause > 0:
        return Wanted(again_seconds=pause)
    pod = new_pod(job)
    if not is_indexed(job):
        return Wanted(create=[pod] * missing)
    indexes = _open_indexes(job, found, missing)
    return Wanted(create=[_pod_of_index(job, pod, index) for index in indexes])


def new_pod(job: Obj) -> Obj:
    pod = pod_from_template(job["spec"]["template"], job, controller_reference(JOBS, job))
    meta, spec = pod["metadata"], pod["spec"]
    if FINALIZER not in meta.get("finalizers", ()):
        meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
    if is_indexed(job):
        for listed in ("containers", "initContainers"):
            if spec.get(listed):
                spec[listed] = [_with_index(container) for container in spec[listed]]
    return pod


def _pod_of_index(job: Obj, pod: Obj, index: int, replaced: Obj | None = None) -> Obj:
    """`pod`: without an index; `replaced`: that of this index that failed before, which counts the
    failures."""
    meta = {**pod["metadata"], "generateName": _generated_prefix(name_of(job), index)}
    meta["annotations"] = {**meta.get("annotations", {}), INDEX: str(index)}
    meta["labels"] = {**meta.get("labels", {}), INDEX: str(index)}
    if has_index_limit(job):
        meta["annotations"] |= _failure_counts(job, replaced)
    spec = {**pod["spec"], "hostname": f"{name_of(job)}-{index}"}
    return {**pod, "metadata": meta, "spec": spec}


def _generated_prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return f"{name[: LONGEST_GENERATED - len(suffix)]}{suffix}"


def _failure_counts(job: Obj, replaced: Obj | None) -> dict[str, str]:
    if replaced is None:
        return {INDEX_FAILURES: "0"}
    counts = is_counted_failure(job, replaced)
    failures = failures_of_index(replaced) + counts
    ignored = ignored_failures_of_index(replaced) + (not counts)
    noted = {INDEX_FAILURES: str(failures)}
    return {**noted, IGNORED_INDEX_FAILURES: str(ignored)} if ignored else noted


def _with_index(container: Obj) -> Obj:
    listed = container.get("env") or ()
    if any(item.get("name") == _INDEX_VARIABLE["name"] for item in listed):
        return container
    return {**container, "env": [*listed, _INDEX_VARIABLE]}


def _target(job: Obj, found: Tally) -> int:
    parallelism = int(job["spec"].get("parallelism") or 0)
    completions = completions_of(job)
    if completions is None:
        # A work queue: after the first success the others finish, and no new ones start.
        return len(found.active) if found.succeeded > 0 else parallelism
    return min(max(0, completions - found.succeeded), parallelism)


def _surplus(job: Obj, found: Tally, least: int) -> list[Obj]:
    """At least so many, and every pod whose index another one has, or that has none."""
    surplus: list[Obj] = []
    left = list(found.active)
    if is_indexed(job):
        surplus, left = _unwanted_indexes(found.active, completions_of(job) or 0)
    if len(surplus) < least:
        surplus += sorted(left, key=_removal_rank)[: least - len(surplus)]
    return surplus


def _unwanted_indexes(active: Sequence[Obj], completions: int) -> tuple[list[Obj], list[Obj]]:
    by_index: dict[int, list[Obj]] = {}
    for pod in active:
        by_index.setdefault(index_of(pod), []).append(pod)
    surplus: list[Obj] = []
    left: list[Obj] = []
    for index, pods in sorted(by_index.items()):
        if not 0 <= index < completions:
            surplus += pods
            continue
        *others, kept = sorted(pods, key=_removal_rank)
        surplus += others
        left.append(kept)
    return surplus, left


def _removal_rank(pod: Obj) -> tuple[float, ...]:
    """As upstream's ActivePods: what has got least far goes first, then what is youngest."""
    since = ready_since(pod)
    created = meta_of(pod).get("creationTimestamp")
    return (
        1 if pod_facts.node_name(pod) else 0,
        phase_rank(pod),
        0 if since is None else 1,
        0.0 if since is None else -since,
        -most_restarts(pod),
        -seconds_of(created) if created else float("-inf"),
    )


def _open_indexes(job: Obj, found: Tally, count: int) -> list[int]:
    taken: Iterable[Obj] = found.active
    if replaces_only_failed(job):
        taken = (*found.active, *filter(is_terminating, found.pods))
    busy = indexes_of(index for index in map(index_of, taken) if index >= 0)
    over = found.completed_indexes | found.failed_indexes
    return (over | busy).missing(completions_of(job) or 0, count)


def _with_index_pauses(job: Obj, found: Tally, indexes: Sequence[int], now: float) -> Wanted:
    delayed = found.delayed or {}
    pauses = {index: remaining_seconds_of_index(delayed.get(index), now) for index in indexes}
    ready = [index for index, pause in pauses.items() if pause <= 0]
    waiting = [pause for pause in pauses.values() if pause > 0]
    pod = new_pod(job)
    create = [_pod_of_index(job, pod, index, delayed.get(index)) for index in ready]
    return Wanted(create=create, again_seconds=min(waiting) if waiting else None)
