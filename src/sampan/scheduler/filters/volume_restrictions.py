"""VolumeRestrictions: a ReadWriteOncePod claim is for one pod in the whole cluster."""

import numpy as np

from sampan.scheduler.filters.rule import Filter, always_resolvable, one_reason
from sampan.scheduler.rows import PodShape
from sampan.scheduler.snapshot import BoolArray, Snapshot
from sampan.scheduler.volumes import ONLY_ONE_POD


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    for key in pod.claims:
        claim = nodes.volumes.claims.get(key)
        if claim is not None and ONLY_ONE_POD in claim.modes and nodes.claim_uses.get(key):
            return np.zeros(len(nodes), np.bool_)
    return None


VOLUME_RESTRICTIONS = Filter(
    "VolumeRestrictions",
    mask,
    one_reason(
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access "
        "mode"
    ),
    always_resolvable,
)
