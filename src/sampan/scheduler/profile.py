"""Which rules a scheduler applies, in which order and with which weight.

Job: the default profile of the original, as far as its rules are there.
Invariant: the order of the filters is upstream's: the first that refuses a node gives the reason.
"""

from collections.abc import Mapping

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.filters.dynamic_resources import DYNAMIC_RESOURCES
from sampan.scheduler.filters.inter_pod_affinity import INTER_POD_AFFINITY
from sampan.scheduler.filters.node_affinity import NODE_AFFINITY
from sampan.scheduler.filters.node_declared_features import NODE_DECLARED_FEATURES
from sampan.scheduler.filters.node_name import NODE_NAME
from sampan.scheduler.filters.node_ports import NODE_PORTS
from sampan.scheduler.filters.node_resources_fit import NODE_RESOURCES_FIT
from sampan.scheduler.filters.node_unschedulable import NODE_UNSCHEDULABLE
from sampan.scheduler.filters.node_volume_limits import NODE_VOLUME_LIMITS
from sampan.scheduler.filters.pod_topology_spread import POD_TOPOLOGY_SPREAD
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.filters.taint_toleration import TAINT_TOLERATION
from sampan.scheduler.filters.volume_binding import VOLUME_BINDING
from sampan.scheduler.filters.volume_restrictions import VOLUME_RESTRICTIONS
from sampan.scheduler.filters.volume_zone import VOLUME_ZONE
from sampan.scheduler.model.pod_info import DEFAULT_SCHEDULER
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.scores.balanced_allocation import BALANCED_ALLOCATION
from sampan.scheduler.scores.dynamic_resources import PREFERRED_DEVICES
from sampan.scheduler.scores.image_locality import IMAGE_LOCALITY
from sampan.scheduler.scores.inter_pod_affinity import PREFERRED_POD_AFFINITY
from sampan.scheduler.scores.node_affinity import PREFERRED_NODE_AFFINITY
from sampan.scheduler.scores.node_resources_fit import LEAST_ALLOCATED
from sampan.scheduler.scores.pod_topology_spread import PREFERRED_SPREAD
from sampan.scheduler.scores.rule import Score
from sampan.scheduler.scores.taint_toleration import PREFERRED_TAINTS
from sampan.scheduler.scores.volume_binding import FREE_STORAGE


@dataclass(frozen=True, slots=True)
class Profile:
    scheduler_name: str
    filters: tuple[Filter, ...]
    scores: tuple[tuple[Score, int], ...]  # with their weights
    preempts: bool = True
    # Plugins of the user's, with their arguments and the weights of their points.
    plugins: tuple[tuple[type[Plugin], Mapping[str, object], int], ...] = ()
    volume_seconds: float = 600.0  # how long volumes may take to be bound
    # Requests that NodeResourcesFit passes over, by name and by the part before the slash.
    ignored: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()

    @property
    def ignores_some(self) -> bool:
        return bool(self.ignored or self.ignored_groups)

    def ignores(self, resource: str) -> bool:
        group, slash, _ = resource.partition("/")
        return resource in self.ignored or (bool(slash) and group in self.ignored_groups)


# In upstream's order.
ALL_FILTERS = (
    NODE_UNSCHEDULABLE,
    NODE_NAME,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    VOLUME_RESTRICTIONS,
    NODE_VOLUME_LIMITS,
    VOLUME_BINDING,
    VOLUME_ZONE,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    DYNAMIC_RESOURCES,
    NODE_DECLARED_FEATURES,
)

DEFAULT_PROFILE = Profile(
    DEFAULT_SCHEDULER,
    filters=ALL_FILTERS,
    scores=(
        (PREFERRED_TAINTS, 3),
        (PREFERRED_NODE_AFFINITY, 2),
        (LEAST_ALLOCATED, 1),
        (FREE_STORAGE, 1),
        (PREFERRED_SPREAD, 2),
        (PREFERRED_POD_AFFINITY, 2),
        (BALANCED_ALLOCATION, 1),
        (IMAGE_LOCALITY, 1),
        (PREFERRED_DEVICES, 2),
    ),
)
