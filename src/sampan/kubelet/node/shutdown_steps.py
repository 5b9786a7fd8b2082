"""In which order the pods of a machine that goes down end, and how long each group has. Pure."""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj
from sampan.api.rules.pods import priority
from sampan.core.fast_dataclass import dataclass

CRITICAL_PRIORITY = 2_000_000_000  # as upstream's system-cluster-critical


@dataclass(frozen=True, slots=True)
class ShutdownStep:
    """Pods of this priority and above, up to the next step's, have so long to end."""

    priority: int
    seconds: float


def steps_of(total_seconds: float, critical_seconds: float) -> tuple[ShutdownStep, ...]:
    """The two periods of shutdownGracePeriod and shutdownGracePeriodCriticalPods."""
    if total_seconds <= 0:
        return ()
    return (
        ShutdownStep(0, total_seconds - critical_seconds),
        ShutdownStep(CRITICAL_PRIORITY, critical_seconds),
    )


def group_by_step(
    steps: Sequence[ShutdownStep], pods: Iterable[Obj]
) -> list[tuple[ShutdownStep, list[Obj]]]:
    """In the order of going. As upstream: pods below the lowest step go with it."""
    ordered = sorted(steps, key=lambda step: step.priority)
    groups: list[tuple[ShutdownStep, list[Obj]]] = [(step, []) for step in ordered]
    for pod in pods:
        fitting = [number for number, step in enumerate(ordered) if step.priority <= priority(pod)]
        groups[fitting[-1] if fitting else 0][1].append(pod)
    return groups
