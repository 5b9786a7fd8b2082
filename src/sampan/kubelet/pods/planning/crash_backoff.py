"""CrashLoopBackOff: how long a container that ended waits before it is started again. Pure.

Job: delay and reset of the crash backoff from what the runtime itself remembers. Pure.
Invariant: nothing is kept in memory: the streak of quick ends travels as an annotation of each
    container, so that backoff goes on after a restart of the agent where it was.
Invariant: another image or other resources begin a streak of their own (as upstream's backoff key).
"""

from sampan.api.objects import Obj
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.resize_state import resources_made_with
from sampan.kubelet.contracts.runtime import ContainerStatus
from sampan.kubelet.contracts.spec import is_made_of, resources_of

STREAK_ANNOTATION = "sampan.dev/restart-streak"
# As upstream: the first restart is at once, the next after 10 s, doubling to 5 min.
CRASH = Backoff(first_seconds=10.0, cap_seconds=300.0)
# Once a container ran for longer than this, its streak begins anew.
FORGIVEN_AFTER_SECONDS = 600.0


def with_longest(seconds: float) -> Backoff:
    """As upstream: the first wait is no longer than the longest."""
    return Backoff(first_seconds=min(CRASH.first_seconds, seconds), cap_seconds=seconds)


@dataclass(frozen=True, slots=True)
class Turn:
    """When a container may be started once more, and how many restarts that makes in a row."""

    streak: int = 0
    delay_seconds: float = 0.0
    due: float = 0.0


def next_turn(
    container: Obj,
    newest: ContainerStatus,
    ended: ContainerStatus | None,
    now: float,
    backoff: Backoff,
) -> Turn:
    """`ended`: the newest instance that has ended, which is `newest` or one before it: of one that
    is only being stopped nothing counts yet but its streak."""
    streak = streak_of(container, newest)
    if ended is None:
        return Turn(streak)
    if newest.started_at and ended.finished_at - newest.started_at > FORGIVEN_AFTER_SECONDS:
        return Turn(1)
    delay = backoff.delay(streak)
    # Of an end that lies in the future only one thing is known: the clock was set back since. It
    # must not wait until the clock has caught up.
    due = ended.finished_at + delay if ended.finished_at <= now else now
    return Turn(streak + 1, delay, due)


def streak_of(container: Obj, instance: ContainerStatus) -> int:
    """How many restarts in a row lie behind it; none, where it was made of something else."""
    made_alike = resources_made_with(instance) == resources_of(container)
    if not made_alike or not is_made_of(instance, container):
        return 0
    try:
        return int(instance.annotations.get(STREAK_ANNOTATION, ""))
    except ValueError:
        # Not made by us: the restart count is the best guess.
        return instance.attempt
