"""Which pods of a StatefulSet its update replaces now.

Job: its pods, the highest ordinal first → those that go. Pure.
Invariant: with no more pods unavailable than are allowed to be, the update keeps it so.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.controllers.workloads.rollout import scaled_value
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    pod: Obj
    is_outdated: bool  # and not on its way out
    is_held: bool  # below the partition
    is_healthy: bool


def next_outdated(pods: Sequence[Candidate]) -> list[Obj]:
    """The first outdated one, broken or not: the update may be what heals it."""
    for found in pods:
        if found.is_held:
            break
        if found.is_outdated:
            return [found.pod]
        if not found.is_healthy:
            break  # wait for it
    return []


def several_outdated(pods: Sequence[Candidate], most: int, *, heals: bool) -> list[Obj]:
    """As many as may be unavailable beside those that are. `heals`: outdated ones that are
    unavailable go in any case, nobody loses anything by them."""
    left = max(most - sum(not found.is_healthy for found in pods), 0)
    outdated = [found for found in pods if found.is_outdated and not found.is_held]
    broken = [found for found in outdated if heals and not found.is_healthy]
    others = [found for found in outdated if found.is_healthy or not heals]
    return [found.pod for found in (*broken, *others[:left])]


def most_unavailable(rolling: Obj, replicas: int) -> int:
    """A small part of few is still one."""
    amount = rolling.get("maxUnavailable")
    return max(scaled_value(1 if amount is None else amount, replicas, round_up=False), 1)
