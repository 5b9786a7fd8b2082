"""What a scheduler plugin of your own is.

Job: the interface. Subclass Plugin, override what you need, name the class in the configuration
    (`my_package.my_module:MyPlugin`). docs/scheduler.md shows one at work.
Invariant: methods without `async` do not block; what they are given is read-only.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.scores.rule import MOST_POINTS


@dataclass(frozen=True, slots=True)
class Allow:
    pass


@dataclass(frozen=True, slots=True)
class Deny:
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Keep the place, and wait for `handle.allow` or `handle.reject`."""

    seconds: float


Verdict = Allow | Deny | Wait


@dataclass(frozen=True, slots=True)
class WaitingPod:
    uid: str
    pod: Obj
    node: str


class Handle(Protocol):
    """What a plugin may ask of the scheduler."""

    def waiting(self) -> Iterable[WaitingPod]:
        """Pods that wait for a permit."""

    def allow(self, uid: str) -> None: ...

    def reject(self, uid: str, why: str) -> None: ...

    def reconsider(self, uid: str) -> None:
        """Ask `pre_enqueue` again, or try the pod at once."""

    def placed(self, namespace: str, labels: Mapping[str, str]) -> int:
        """How many pods on nodes have these labels."""


class Plugin:
    def __init__(self, args: Mapping[str, object], handle: Handle) -> None:
        self.args, self.handle = args, handle

    @property
    def name(self) -> str:
        return type(self).__name__

    def pre_enqueue(self, pod: Obj) -> str | None:
        """Why the pod must not be tried yet; None: it may."""
        return None

    def sort_key(self, pod: Obj) -> tuple[float, ...] | None:
        """The smaller, the sooner; None: by priority. Equal ones by age."""
        return None

    def pre_filter(self, pod: Obj) -> str | None:
        """Why the pod can go nowhere; None: look at the nodes."""
        return None

    def filter(self, pod: Obj, node: NodeInfo) -> str | None:
        """Why the node will not do; None: it will."""
        return None

    def filter_all(self, pod: Obj, nodes: Snapshot, feasible: BoolArray) -> Mapping[int, str]:
        """The refused of the feasible nodes, with the reason. By default, each is asked about."""
        if type(self).filter is Plugin.filter:
            return {}
        answers = (
            (at, self.filter(pod, nodes.rows[at])) for at in np.flatnonzero(feasible).tolist()
        )
        return {at: why for at, why in answers if why is not None}

    def post_filter(self, pod: Obj, why: str) -> str | None:
        """The pod found no node. A plugin that makes room on one names it: the pod is expected
        there, as after a preemption (which goes first: its node counts, where it found one)."""
        return None

    def pre_score(self, pod: Obj, nodes: Snapshot, feasible: BoolArray) -> bool:
        """Called once before the nodes are scored, to work out what they have in common; False:
        this plugin has nothing to say about the pod."""
        return True

    def score(self, pod: Obj, node: NodeInfo) -> int:
        return 0

    def score_all(self, pod: Obj, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
        """Raw points; None: nothing to say. By default, each feasible node is asked about."""
        if type(self).score is Plugin.score:
            return None
        points = np.zeros(len(nodes), np.int64)
        for at in np.flatnonzero(feasible).tolist():
            points[at] = self.score(pod, nodes.rows[at])
        return points

    def normalize(self, points: IntArray, feasible: BoolArray) -> IntArray:
        """Raw points → 0..100."""
        return np.clip(points, 0, MOST_POINTS)

    def reserve(self, pod: Obj, node: str) -> str | None:
        """Called when the pod was given the node; a text refuses it."""
        return None

    def unreserve(self, pod: Obj, node: str) -> None:
        """What was reserved is not needed; may be called without a reservation."""

    def permit(self, pod: Obj, node: str) -> Verdict:
        return Allow()

    async def pre_bind(self, pod: Obj, node: str) -> None:
        """Raise OSError or an ApiError where it fails."""

    async def bind(self, pod: Obj, node: str) -> bool:
        """True where it was bound here; False: somebody else does it."""
        return False

    async def post_bind(self, pod: Obj, node: str) -> None:
        """The pod is bound."""
