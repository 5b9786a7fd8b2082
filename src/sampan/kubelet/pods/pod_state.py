"""Pod worker state: where one pod UID stands between seen and forgotten.

Job: fold one event into the next Worker. No runtime, no API, no clock.
Invariant: phase never moves back, but for one case: what is found running of a finished pod makes
    it terminating once more. A static pod recreated under its uid is a new Worker, and only after
    the old one is finished.
Invariant: once a kill is asked for, nothing is started and grace never grows.
Owner: PodWorkers; nobody else replaces a Worker.

    WAITING ──started──▶ SYNCING ──killed | terminal──▶ TERMINATING ──▶ TERMINATED ──▶ FINISHED
       └──────────────killed──────────────────────────────▲
"""

import math
from enum import IntEnum, StrEnum

from sampan.core.fast_dataclass import dataclass, replace


class Phase(IntEnum):
    WAITING = 0  # another pod of the same full name is not finished yet
    SYNCING = 1  # may start containers
    TERMINATING = 2  # may only stop them
    TERMINATED = 3  # none run; volumes may go
    FINISHED = 4  # nothing left to do on the node


class Cause(StrEnum):
    """Why a pod has to end."""

    DELETED = "deleted"
    REMOVED = "removed"  # gone from its source without a grace period
    COMPLETED = "completed"  # every container ended, and none is to be restarted
    REJECTED = "rejected"  # it does not fit on the node
    EVICTED = "evicted"
    ORPHANED = "orphaned"  # runs, but is in no source


@dataclass(frozen=True, slots=True)
class Worker:
    phase: Phase = Phase.WAITING
    grace_seconds: float = math.inf  # the shortest that was asked for
    cause: Cause | None = None  # the first
    recreate: bool = False  # a static pod of this uid waits for its turn


# A container gets at least this long to react to its first signal.
MINIMUM_GRACE_SECONDS = 1.0


def started(worker: Worker) -> Worker:
    assert worker.phase is Phase.WAITING, worker
    return replace(worker, phase=Phase.SYNCING)


def killed(worker: Worker, grace_seconds: float, cause: Cause) -> Worker:
    """Repeated kills may only shorten the wait."""
    if worker.phase >= Phase.TERMINATED:
        return worker
    return replace(
        worker,
        phase=Phase.TERMINATING,
        # As pod_workers.go: grace only shrinks.
        grace_seconds=min(worker.grace_seconds, max(grace_seconds, MINIMUM_GRACE_SECONDS)),
        cause=worker.cause or cause,
    )


def step_done(worker: Worker) -> Worker:
    """The work of a terminating or terminated worker succeeded."""
    assert Phase.TERMINATING <= worker.phase < Phase.FINISHED, worker
    assert worker.cause is not None, worker
    return replace(worker, phase=Phase(worker.phase + 1))


def resurfaced(worker: Worker) -> Worker:
    """Something of a finished pod was found running: a start that was cancelled too late."""
    if worker.phase is not Phase.FINISHED:
        return worker
    return replace(worker, phase=Phase.TERMINATING)


def recreated(worker: Worker) -> Worker:
    """A pod of the same uid is wanted again (static pods only): at once, or when this one ends."""
    if worker.phase is Phase.FINISHED:
        return Worker()
    if worker.phase < Phase.TERMINATING:
        return worker
    return replace(worker, recreate=True)


def interrupts(before: Worker, after: Worker) -> bool:
    """Must the step that runs under `before` be cancelled, because `after` asks for another?"""
    if after.phase is not before.phase:
        return True
    return after.phase is Phase.TERMINATING and after.grace_seconds < before.grace_seconds
