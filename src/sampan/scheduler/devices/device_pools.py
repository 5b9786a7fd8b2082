"""Pools of devices, and which nodes reach them. Pure.

Job: slices → pools; a node → what it can reach of them.
Invariant: of a pool only its newest generation counts.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.devices.devices import Device, Slice, Where
from sampan.scheduler.model.arrays import BoolArray, NodeLabels
from sampan.scheduler.model.node_masks import any_term


@dataclass(frozen=True, slots=True)
class Pool:
    """What one driver offers under one name; asked for a node, to that node."""

    identity: tuple[str, str]
    devices: tuple[Device, ...]
    incomplete: bool  # some of its slices are not there yet
    invalid: bool  # two devices have the same name


class Pools:
    def __init__(self, slices: Iterable[Slice]) -> None:
        self._all = _newest(slices)
        self._local: dict[str, list[int]] = {}  # node → pools with devices of its own
        self._shared: dict[Where, list[int]] = {}
        for number, pool in enumerate(self._all):
            for where in dict.fromkeys(device.where for device in pool.devices):
                kept = (
                    self._local.setdefault(where.node, [])
                    if where.node
                    else (self._shared.setdefault(where, []))
                )
                kept.append(number)

    def by_node(self, nodes: NodeLabels) -> dict[tuple[str, tuple[Where, ...]], list[int]]:
        """Nodes that reach the same devices, together: what they reach → their indices. Nodes that
        reach none are left out."""
        found: dict[tuple[str, tuple[Where, ...]], list[int]] = {}
        masks = [(where, reached_from(where, nodes)) for where in self._shared]
        if masks:
            some: Sequence[int] = range(len(nodes))
        else:
            some = [nodes.at[name] for name in self._local if name in nodes.at]
        for at in some:
            name = nodes.rows[at].name
            near = tuple(where for where, mask in masks if mask[at])
            local = name if name in self._local else ""
            if local or near:
                found.setdefault((local, near), []).append(at)
        return found

    def reached(self, node: str, near: Sequence[Where]) -> list[Pool]:
        """The pools with what is reached of them, in the order of their names."""
        numbers = set(self._local.get(node, ())) if node else set()
        numbers.update(*(self._shared[item] for item in near))
        there = {*near, Where(node)} if node else set(near)
        found = []
        for number in sorted(numbers):
            pool = self._all[number]
            devices = tuple(
                device for device in pool.devices if device.usable and device.where in there
            )
            found.append(Pool(pool.identity, devices, pool.incomplete, pool.invalid))
        return found


def reached_from(where: Where, nodes: NodeLabels) -> BoolArray:
    if where.node:
        alone: BoolArray = np.zeros(len(nodes), np.bool_)
        if where.node in nodes.at:
            alone[nodes.at[where.node]] = True
        return alone
    if where.terms is None:
        return np.ones(len(nodes), np.bool_)
    return any_term(where.terms, nodes)


def _newest(slices: Iterable[Slice]) -> list[Pool]:
    by_pool: dict[tuple[str, str], list[Slice]] = {}
    for slice_ in sorted(slices, key=lambda slice_: slice_.name):
        newest = by_pool.setdefault(slice_.pool, [])
        if newest and newest[0].generation < slice_.generation:
            newest.clear()
        if not newest or newest[0].generation == slice_.generation:
            newest.append(slice_)
    found = []
    for identity, those in sorted(by_pool.items()):
        devices = tuple(chain.from_iterable(item.devices for item in those))
        names = {device.id for device in devices}
        missing = len(those) < those[0].count
        found.append(Pool(identity, devices, missing, len(names) < len(devices)))
    return found
