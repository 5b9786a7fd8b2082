"""VolumeZone: a volume that is labelled with a zone or region is used there."""

import numpy as np

from sampan.api.rules.node_selectors import Requirement
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, never_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.node_masks import label_mask
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.topology import in_domain
from sampan.scheduler.model.volumes import ZONE_LABELS

_BETWEEN = "__"  # several zones in one label
_BETA = "failure-domain.beta.kubernetes.io/"
_STABLE = "topology.kubernetes.io/"


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    wanted = _wanted_zones(pod, nodes)
    if not wanted:
        return None
    # A cluster whose nodes have no zones has one.
    labelled: BoolArray = np.zeros(len(nodes), np.bool_)
    for key in ZONE_LABELS:
        labelled |= in_domain(nodes.label(key))
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for key, values in wanted:
        there = label_mask(Requirement(key, "In", values), nodes)
        if key.startswith(_BETA):
            stable = label_mask(Requirement(key.replace(_BETA, _STABLE), "In", values), nodes)
            there |= ~in_domain(nodes.label(key)) & stable
        allowed &= there
    return allowed | ~labelled


def _wanted_zones(pod: PodShape, nodes: Snapshot) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for key in pod.claims:
        claim = nodes.volumes.claims.get(key)
        volume = nodes.volumes.volumes.get(claim.volume) if claim is not None else None
        if volume is not None:
            found += [
                (label, tuple(value.split(_BETWEEN)))
                for label, value in volume.labels
                if label in ZONE_LABELS
            ]
    return found


VOLUME_ZONE = Filter(
    "VolumeZone", mask, one_reason("node(s) had no available volume zone"), never_resolvable
)
