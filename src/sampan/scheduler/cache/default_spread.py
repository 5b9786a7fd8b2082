"""How pods are spread that do not say it themselves. Pure.

Job: a profile's default constraints and a pod → the constraints that count for it.
Invariant: a pod with constraints of its own has no others.
"""

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.pod_terms import PodSelector, Spread

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Default:
    topology_key: str
    max_skew: int
    hard: bool


@dataclass(frozen=True, slots=True)
class Defaults:
    constraints: tuple[Default, ...]
    # Upstream's own ones: nodes without the labels take part nonetheless.
    system: bool = False

    def of(self, pod: PodShape, nodes: Snapshot) -> tuple[Spread, ...]:
        if pod.demands.spread or not self.constraints:
            return pod.demands.spread
        selector = nodes.workloads.selector_for(pod.namespace, pod.labels, pod.owner)
        if not selector:
            return ()
        those = PodSelector(frozenset({pod.namespace}), None, selector)
        return tuple(
            Spread(
                constraint.topology_key,
                constraint.max_skew,
                min_domains=1,
                hard=constraint.hard,
                selector=those,
                honor_affinity=True,
                honor_taints=False,
            )
            for constraint in self.constraints
        )

    def need_every_label(self, pod: PodShape) -> bool:
        return bool(pod.demands.spread) or not self.system


SYSTEM_DEFAULTS = Defaults((Default(HOSTNAME, 3, False), Default(ZONE, 5, False)), system=True)
