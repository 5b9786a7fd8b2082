"""DynamicResources: the devices that a pod claims must be within reach, and free."""

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.devices.allocate import TIMED_OUT
from sampan.scheduler.devices.device_allocation import NOT_ALL, NOT_HERE
from sampan.scheduler.filters.rule import Filter, never_resolvable
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape


def beforehand(pod: PodShape, nodes: Snapshot) -> str | None:
    return nodes.devices.beforehand(pod.devices, nodes.namespaces) if pod.devices else None


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.devices:
        return None
    found = nodes.devices.found(pod.devices, nodes)
    return found.available & found.allocated


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """As upstream, what cannot be allocated is said before what is allocated elsewhere."""
    found = nodes.devices.found(pod.devices, nodes)
    said: dict[str, int] = {}
    left = refused & ~found.allocated
    for indices, text in found.problems:
        count = int(left[list(indices)].sum())
        if count:
            said[text] = said.get(text, 0) + count
            left[list(indices)] = False
    said[NOT_ALL] = int(left.sum())
    said[NOT_HERE] = int((refused & found.allocated & ~found.available).sum())
    return {text: count for text, count in said.items() if count}


def is_failure(reason: str) -> bool:
    """Something is wrong with a claim or a class: as upstream, that is no answer of a node, the
    attempt has failed."""
    return reason not in (NOT_ALL, NOT_HERE, TIMED_OUT)


DYNAMIC_RESOURCES = Filter(
    "DynamicResources", mask, reasons, never_resolvable, beforehand=beforehand
)
