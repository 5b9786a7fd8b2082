"""CrashLoopBackOff: how long a container that ended waits before it is started again. Pure.

Job: delay and reset of the crash backoff from what the runtime itself remembers. Pure.
Invariant: nothing is kept in memory: the streak of quick ends travels as an annotation of each
    container, so that backoff goes on after a restart of the agent where it was.
"""

from sampan.core.backoff import Backoff
from sampan.kubelet.contracts.runtime import ContainerStatus

STREAK_ANNOTATION = "sampan.dev/restart-streak"
# As upstream: the first restart is at once, the next after 10 s, doubling to 5 min.
CRASH = Backoff(first_seconds=10.0, cap_seconds=300.0)
# A container that ran this long starts anew.
FORGIVEN_AFTER_SECONDS = 600.0


def streak_after(ended: ContainerStatus) -> int:
    """How many restarts without a long run lie behind the container that would come next."""
    if ended.finished_at - ended.started_at >= FORGIVEN_AFTER_SECONDS and ended.started_at:
        return 0
    return streak_of(ended) + 1


def streak_of(container: ContainerStatus) -> int:
    try:
        return int(container.annotations.get(STREAK_ANNOTATION, ""))
    except ValueError:
        # Not made by us: the restart count is the best guess.
        return container.attempt


def delay_after(ended: ContainerStatus) -> float:
    """From its end to the earliest moment of its restart."""
    return CRASH.delay(streak_after(ended) - 1)


def due_at(ended: ContainerStatus, now: float) -> float:
    """Of an end that lies in the future only one thing is known: the clock was set back since. It
    must not wait until the clock has caught up."""
    return ended.finished_at + delay_after(ended) if ended.finished_at <= now else now
