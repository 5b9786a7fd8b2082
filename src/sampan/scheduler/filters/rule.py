"""What a filter is.

Job: the interface that the files beside this one fill, one rule each.
"""

from collections.abc import Callable

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, any_set
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


@dataclass(frozen=True, slots=True)
class Filter:
    name: str
    # True where the rule allows the node; None where the rule does not concern the pod.
    mask: Callable[[PodShape, Snapshot], BoolArray | None]
    # Why the nodes of the mask were refused: text → how many of them.
    reasons: Callable[[PodShape, Snapshot, BoolArray], dict[str, int]]
    # Where removing other pods cannot help (upstream: UnschedulableAndUnresolvable).
    unresolvable: Callable[[PodShape, Snapshot, BoolArray], BoolArray]
    depends: Depends = Depends.EVERYTHING
    # For Depends.PLACE: the mask's entry of one node.
    at: Callable[[PodShape, Snapshot, int], bool] | None = None
    # Why the pod can go nowhere, before any node is looked at (upstream: PreFilter).
    beforehand: Callable[[PodShape, Snapshot], str | None] | None = None
    # The nodes that are looked at at all, where the pod names them (upstream: PreFilterResult).
    # The mask leaves out the others, too; this is for the reason why.
    named: Callable[[PodShape, Snapshot], BoolArray | None] | None = None


def one_reason(text: str) -> Callable[[PodShape, Snapshot, BoolArray], dict[str, int]]:
    return lambda pod, nodes, refused: {text: int(refused.sum())}


def never_resolvable(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
    return refused


def always_resolvable(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
    return refused & False


__all__ = [
    "BoolArray",
    "Filter",
    "PodShape",
    "Snapshot",
    "always_resolvable",
    "any_set",
    "never_resolvable",
    "one_reason",
]
