"""Size estimates of values, for the cost estimator.

Job: ranges of sizes, and what reading that much costs; the arithmetic is cel-go's.
Invariant: nothing grows beyond what 64 bits hold: that much stands for "nobody knows".
"""

from math import ceil

from sampan.core.fast_dataclass import dataclass

LARGEST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Size:
    """Characters of a text, bytes, items of a list, entries of a map."""

    least: int
    most: int

    def plus(self, other: "Size") -> "Size":
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def times(self, other: "Size") -> "Size":
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def union(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))

    def cost(self, factor: float = 1) -> int:
        """Of going through it, at worst."""
        return priced(self.most, factor)


UNKNOWN = Size(0, LARGEST)
SCALAR = Size(1, 1)
EMPTY = Size(0, 0)


def capped(number: int) -> int:
    return min(number, LARGEST)


def priced(number: int, factor: float) -> int:
    return capped(ceil(float(number) * factor))
