"""What the scheduler knows of one node: the only place that looks inside it.

Job: Node object → NodeInfo. Pure.
"""

from collections.abc import Mapping

from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.rules.tolerations import Taint, taints_of
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.model.requests import MOST, PODS, amounts


@dataclass(frozen=True, slots=True)
class NodeInfo:
    name: str
    allocatable: Mapping[str, int]
    allowed_pods: int
    labels: Mapping[str, str]
    taints: frozenset[Taint]
    unschedulable: bool
    images: Mapping[str, int]  # name → bytes
    features: frozenset[str] = frozenset()  # of its agent, that it declares


def node_info_of(node: Obj) -> NodeInfo:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    allocatable = amounts(status.get("allocatable"))
    return NodeInfo(
        name=name_of(node),
        allocatable=allocatable,
        allowed_pods=allocatable.pop(PODS, 0),
        labels=labels_of(node),
        taints=taints_of(node),
        unschedulable=bool(spec.get("unschedulable")),
        images={
            name: min(int(image.get("sizeBytes") or 0), MOST)
            for image in status.get("images") or ()
            for name in image.get("names") or ()
        },
        features=frozenset(status.get("declaredFeatures") or ()),
    )
