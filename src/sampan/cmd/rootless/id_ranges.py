"""Which users and groups of the machine an ordinary user may give to containers.

Job: /etc/subuid and /etc/subgid → what the ids of a user namespace are outside. Pure.
Invariant: root inside is the user; a single id is the least, and always possible.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sampan.core.digits import is_digits


class IdRange(NamedTuple):
    inside: int
    outside: int
    length: int


def id_map(own: int, name: str, granted: str) -> list[IdRange]:
    """`own`: the id of the user `name`; `granted`: a text as /etc/subuid."""
    found, inside = [IdRange(0, own, 1)], 1
    for first, count in _ranges_of(granted, {name, str(own)} - {""}):
        found.append(IdRange(inside, first, count))
        inside += count
    return found


def is_single(ranges: Sequence[IdRange]) -> bool:
    """Then files and processes of images belong to one user, whoever they say."""
    return len(ranges) == 1


def as_lines(ranges: Sequence[IdRange]) -> str:
    """As /proc/PID/uid_map takes them."""
    return "".join(f"{each.inside} {each.outside} {each.length}\n" for each in ranges)


def as_words(ranges: Sequence[IdRange]) -> list[str]:
    """As newuidmap takes them."""
    return [str(number) for each in ranges for number in each]


def _ranges_of(granted: str, owners: set[str]) -> Iterator[tuple[int, int]]:
    for line in granted.splitlines():
        owner, _, numbers = line.strip().partition(":")
        first, _, count = numbers.partition(":")
        if owner in owners and is_digits(first) and is_digits(count) and int(count) > 0:
            yield int(first), int(count)
