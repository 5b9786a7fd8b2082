"""The arrays that columns over nodes are made of, and what node masks read of a snapshot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sampan.scheduler.model.node_info import NodeInfo

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
LabelNumbers = tuple[IntArray, BoolArray]  # values, and where there are any

ABSENT = -1  # in a label column: the node has no such label


class NodeLabels(Protocol):
    """As much of a Snapshot as node selector terms are matched against."""

    @property
    def rows(self) -> Sequence[NodeInfo]: ...

    @property
    def at(self) -> Mapping[str, int]: ...

    @property
    def label(self) -> Callable[[str], IntArray]: ...

    @property
    def has_label(self) -> Callable[[str], bool]: ...

    @property
    def label_value(self) -> Callable[[str], int]: ...

    @property
    def label_numbers(self) -> Callable[[str], LabelNumbers]: ...

    def __len__(self) -> int: ...


def any_set(mask: BoolArray) -> bool:
    return bool(mask.any())
