"""NUMA nodes as bits of a number, and what a provider of resources says of them. Pure.

Job: sets of NUMA nodes, in upstream's order; topology hints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

from sampan.core.fast_dataclass import dataclass

Mask = int  # bit n: NUMA node n


@dataclass(frozen=True, slots=True)
class Hint:
    """With resources of these NUMA nodes a container can be served. `mask` None: of any."""

    mask: Mask | None
    preferred: bool


# By resource; None: the provider does not mind; no hint at all: it cannot be served.
Hints = Mapping[str, Sequence[Hint] | None]


@dataclass(frozen=True, slots=True)
class NumaNodes:
    """Those of a machine."""

    ids: tuple[int, ...] = (0,)
    distances: Mapping[int, Sequence[int]] = field(default_factory=dict)  # from each to each

    @property
    def everything(self) -> Mask:
        return mask_of(self.ids)

    def masks(self) -> Iterator[Mask]:
        return masks_of(self.ids)

    def distance(self, mask: Mask) -> float:
        """Between its nodes, on average."""
        nodes = bits_of(mask)
        total = sum(self.distances[one][self.ids.index(other)] for one in nodes for other in nodes)
        return total / len(nodes) ** 2 if nodes else 0.0


def mask_of(nodes: Iterable[int]) -> Mask:
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


def masks_of(nodes: Sequence[int]) -> Iterator[Mask]:
    """Each set of them, small ones first."""
    for size in range(1, len(nodes) + 1):
        for some in combinations(nodes, size):
            yield mask_of(some)


def bits_of(mask: Mask) -> list[int]:
    return [node for node in range(mask.bit_length()) if mask >> node & 1]


def count(mask: Mask) -> int:
    return mask.bit_count()


def preferring_narrow(masks: Iterable[Mask], narrowest: int) -> list[Hint]:
    """As each of upstream's providers: preferred are those of as few nodes as would do."""
    return [Hint(mask, count(mask) == narrowest) for mask in masks]
