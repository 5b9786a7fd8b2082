"""The pods of a Job: how many are wanted now, for which indexes, and what a new one looks like.

Job: from the tally to creations and deletions, and the pause that failures impose. Pure.
Invariant: no more than BURST creations or deletions at once.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, copy_of, name_of
from sampan.api.resources import JOBS
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_tally import (
    FINALIZER,
    INDEX,
    INDEX_FAILURES,
    Tally,
    completions_of,
    failures_of_index,
    index_of,
    is_failed,
    is_indexed,
    replaces_only_failed,
)
from sampan.controllers.workloads.pod_control import (
    controller_reference,
    finished_at,
    first_to_go,
    is_terminating,
    pod_from_template,
)
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass

BURST = 500
PAUSE = Backoff(first_seconds=10.0, cap_seconds=600.0)  # as upstream's pod failure backoff
LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Wanted:
    create: Sequence[Obj] = ()  # pods, ready to be sent
    delete: Sequence[Obj] = ()
    again_seconds: float | None = None


def wanted_pods(job: Obj, tally: Tally, pods: Sequence[Obj], now: float) -> Wanted:
    if is_indexed(job):
        return _indexed_pods(job, tally, pods, now)
    target = _target(job, tally)
    surplus = len(tally.active) - target
    if surplus > 0:
        return Wanted(delete=first_to_go(tally.active, min(surplus, BURST), {}, now))
    missing = -surplus
    if replaces_only_failed(job):
        missing -= tally.terminating
    if missing <= 0:
        return Wanted()
    pause = _pause(job, pods, now)
    if pause > 0:
        return Wanted(again_seconds=pause)
    return Wanted(create=[new_pod(job, None, 0)] * min(missing, BURST))


def new_pod(job: Obj, index: int | None, failures: int) -> Obj:
    pod = pod_from_template(job["spec"]["template"], job, controller_reference(JOBS, job))
    meta = pod["metadata"]
    meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
    if index is None:
        return pod
    meta["generateName"] = f"{name_of(job)}-{index}-"
    meta["annotations"] = {**meta.get("annotations", {}), INDEX: str(index)}
    meta["labels"] = {**meta.get("labels", {}), INDEX: str(index)}
    if job["spec"].get("backoffLimitPerIndex") is not None:
        meta["annotations"][INDEX_FAILURES] = str(failures)
    spec = pod["spec"] = copy_of(pod["spec"])
    hostname = f"{name_of(job)}-{index}"
    if len(hostname) <= LONGEST_NAME:
        spec["hostname"] = hostname
    for container in (*(spec.get("containers") or ()), *spec.get("initContainers", ())):
        _add_index(container)
    return pod


def _add_index(container: Obj) -> None:
    listed = container.setdefault("env", [])
    if not any(item.get("name") == "JOB_COMPLETION_INDEX" for item in listed):
        path = f"metadata.labels['{INDEX}']"
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
        listed.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})


def _target(job: Obj, tally: Tally) -> int:
    parallelism = int(job["spec"].get("parallelism") or 0)
    completions = completions_of(job)
    if completions is None:
        # A work queue: after the first success the others finish, and no new ones start.
        if tally.all_succeeded > 0:
            return min(len(tally.active), parallelism)
        return parallelism
    return min(max(0, completions - tally.all_succeeded), parallelism)


def _sorted_out(
    active: Sequence[Obj], open_indexes: frozenset[int], target: int
) -> tuple[dict[int, Obj], list[Obj]]:
    """One pod for each open index, running ones first and low indexes first; and the rest."""
    kept: dict[int, Obj] = {}
    surplus: list[Obj] = []
    for pod in sorted(active, key=lambda pod: (pod_facts.phase(pod) != "Running", index_of(pod))):
        index = index_of(pod)
        if index in kept or index not in open_indexes:
            surplus.append(pod)
        else:
            kept[index] = pod
    surplus += [kept.pop(index) for index in sorted(kept)[target:]]
    return kept, surplus


def _indexed_pods(job: Obj, tally: Tally, pods: Sequence[Obj], now: float) -> Wanted:
    completions = completions_of(job) or 0
    done = tally.completed_indexes | tally.failed_indexes
    open_indexes = [index for index in range(completions) if index not in done]
    parallelism = int(job["spec"].get("parallelism") or 0)
    target = min(len(open_indexes), parallelism)
    kept, surplus = _sorted_out(tally.active, frozenset(open_indexes), target)
    if surplus:
        return Wanted(delete=surplus[:BURST])
    leaving: set[int] = set()
    if replaces_only_failed(job):
        leaving = {index_of(pod) for pod in pods if is_terminating(pod)}
    room = target - len(kept) - len(leaving)
    missing = [index for index in open_indexes if index not in kept and index not in leaving]
    return _with_pauses(job, pods, missing[: max(0, min(room, BURST))], now)


def _with_pauses(job: Obj, pods: Sequence[Obj], indexes: Sequence[int], now: float) -> Wanted:
    if not indexes:
        return Wanted()
    if job["spec"].get("backoffLimitPerIndex") is None:
        pause = _pause(job, pods, now)
        if pause > 0:
            return Wanted(again_seconds=pause)
        return Wanted(create=[new_pod(job, index, 0) for index in indexes])
    create: list[Obj] = []
    pauses: list[float] = []
    failed_of: dict[int, list[Obj]] = {}
    for pod in pods:
        if is_failed(job, pod):
            failed_of.setdefault(index_of(pod), []).append(pod)
    for index in indexes:
        failed = failed_of.get(index, [])
        failures = max((failures_of_index(pod) + 1 for pod in failed), default=0)
        last = max((finished_at(pod) for pod in failed), default=now)
        pause = last + PAUSE.delay(failures) - now if failures else 0.0
        if pause > 0:
            pauses.append(pause)
        else:
            create.append(new_pod(job, index, failures))
    return Wanted(create=create, again_seconds=min(pauses) if pauses else None)


def _pause(job: Obj, pods: Sequence[Obj], now: float) -> float:
    """How long to wait before the next pod: it grows with each failure since the last success."""
    ends: list[tuple[float, bool]] = []
    for pod in pods:
        if pod_facts.phase(pod) == "Succeeded":
            ends.append((finished_at(pod), True))
        elif is_failed(job, pod):
            ends.append((finished_at(pod), False))
    ends.sort(reverse=True)
    failures = 0
    for _, succeeded in ends:
        if succeeded:
            break
        failures += 1
    return ends[0][0] + PAUSE.delay(failures) - now if failures else 0.0
