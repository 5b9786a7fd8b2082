"""NodeResourcesFit: room for one more pod and for everything that it requests."""

import numpy as np

from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends

TOO_MANY_PODS = "Too many pods"


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    allowed = nodes.pods < nodes.allowed_pods
    for name, amount in pod.usage.requests:
        allowed &= _fits(name, amount, nodes)
    return allowed


def fits_at(pod: PodShape, nodes: Snapshot, at: int) -> bool:
    if nodes.pods.item(at) >= nodes.allowed_pods.item(at):
        return False
    for name, amount in pod.usage.requests:
        allocatable = nodes.allocatable.get(name)
        if allocatable is None:
            return False
        if nodes.requested[name].item(at) + amount > allocatable.item(at):
            return False
    return True


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """A node may lack several things, and then counts for each."""
    found = {TOO_MANY_PODS: int((refused & (nodes.pods >= nodes.allowed_pods)).sum())}
    for name, amount in pod.usage.requests:
        found[f"Insufficient {name}"] = int((refused & ~_fits(name, amount, nodes)).sum())
    return {text: count for text, count in found.items() if count}


def unresolvable(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
    """Where the request is more than the whole node has."""
    never: BoolArray = np.zeros(len(nodes), np.bool_)
    for name, amount in pod.usage.requests:
        allocatable = nodes.allocatable.get(name)
        never |= True if allocatable is None else allocatable < amount
    return refused & never


def _fits(name: str, amount: int, nodes: Snapshot) -> BoolArray:
    allocatable = nodes.allocatable.get(name)
    if allocatable is None:
        return np.zeros(len(nodes), np.bool_)
    return nodes.requested[name] + amount <= allocatable


NODE_RESOURCES_FIT = Filter("NodeResourcesFit", mask, reasons, unresolvable, Depends.PLACE, fits_at)
