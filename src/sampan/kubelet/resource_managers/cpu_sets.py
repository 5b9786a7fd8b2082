"""Sets of processors, or of NUMA nodes, as the kernel writes them: 0-3,7. Pure.

Job: text ↔ set of numbers.
"""

from collections.abc import Collection, Iterable
from itertools import groupby

from sampan.core.digits import number_up_to

MOST = 8192  # the most processors that Linux can be built for: a range may not be longer

CpuSet = frozenset[int]
NO_CPUS: CpuSet = frozenset()


def parse_cpus(text: str) -> CpuSet:
    """Raises ValueError."""
    found: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        begin, end = _number(first), _number(last if dash else first)
        if end < begin:
            raise ValueError(f"{part!r} is no range")
        found.update(range(begin, end + 1))
    return frozenset(found)


def _number(text: str) -> int:
    number = number_up_to(MOST, text)
    if number is None:
        raise ValueError(f"{text!r} is no processor")
    return number


def cpus_text(cpus: Iterable[int]) -> str:
    ranges = []
    for _, run in groupby(enumerate(sorted(cpus)), key=lambda item: item[1] - item[0]):
        members = [number for _, number in run]
        ranges.append(f"{members[0]}-{members[-1]}" if len(members) > 1 else str(members[0]))
    return ",".join(ranges)


def listed(numbers: Collection[int]) -> str:
    """Each by itself, as the kubelet writes memory nodes."""
    return ",".join(str(number) for number in sorted(numbers))
