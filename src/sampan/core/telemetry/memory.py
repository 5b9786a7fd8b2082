"""What the memory of this process is used for, by part.

Job: weigh what each part keeps, by samples; put the sum beside what the kernel says.
Invariant: each thing is weighed once: an API object with the part that keeps it, the root of a part
    only there.
Invariant: long containers are not walked through: some of their members stand for all.
Owner: each process has one, with its Metrics; parts add what they keep.
"""

import asyncio
import os
import sys
from asyncio import Task
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import CoroutineType, MemberDescriptorType
from typing import Any, Protocol, runtime_checkable

from sampan.core.fast_dataclass import dataclass

SAMPLE = 24  # members that stand for all of a long container
DEEPEST = 60  # what is nested deeper is left out
_OURS = "sampan."
_MANY = (list, tuple, set, frozenset, deque)
Root = Callable[[], Iterable[object]]


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    bytes: int
    count: int = 0  # of what it is mostly made of


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    roots: Root
    count: Callable[[], int] | None
    keeps_objects: bool
    apart: Root


@runtime_checkable
class KeepsObjects(Protocol):
    """A cache of API objects."""

    def kept_objects(self) -> object: ...


class MemoryTable:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._code_bytes = 0  # before anybody keeps anything

    def add(
        self,
        name: str,
        roots: Root,
        *,
        count: Callable[[], int] | None = None,
        keeps_objects: bool = False,
        apart: Root = tuple,
    ) -> None:
        """`roots`: what the part keeps, asked when it is weighed. Those that come first weigh what
        several have. `keeps_objects`: API objects are its own; where they are nobody's, those
        in caches are weighed there.
        `apart`: what nobody shall look into."""
        self._code_bytes = self._code_bytes or resident_bytes()
        self._entries[name] = _Entry(name, roots, count, keeps_objects, apart)

    async def parts(self) -> list[Part]:
        """The heaviest first. Others have the loop in between."""
        entries = [(entry, list(entry.roots())) for entry in self._entries.values()]
        apart = [root for entry, _ in entries for root in entry.apart()]
        scales = Scales({id(root) for _, roots in entries for root in roots} | set(map(id, apart)))
        scales.scattered = not any(entry.keeps_objects for entry, _ in entries)
        found = [Part("interpreter and code", self._code_bytes)]
        for entry, roots in entries:
            heavy = sum(scales.weigh_root(root, entry.keeps_objects) for root in roots)
            found.append(Part(entry.name, heavy, entry.count() if entry.count else 0))
            await asyncio.sleep(0)
        return sorted(found, key=lambda part: -part.bytes)

    async def document(self) -> dict[str, Any]:
        """As `sampan status` and others read it."""
        parts = await self.parts()
        resident = resident_bytes()
        return {
            "residentBytes": resident,
            "parts": [
                {"name": part.name, "bytes": part.bytes, "count": part.count} for part in parts
            ],
            # Tasks and connections, what libraries keep, and what the allocator has not given back.
            "restBytes": resident - sum(part.bytes for part in parts),
        }


class Scales:
    """Knows what was weighed before."""

    def __init__(self, apart: Iterable[int] = ()) -> None:
        """`apart`: ids of what others weigh."""
        self._seen = set(apart)
        self._held: list[object] = []  # an id that was seen stays that of the same thing
        self._keeps_objects = False
        self.scattered = False  # nobody keeps all API objects: those in caches are weighed there
        self._slots: dict[type, tuple[MemberDescriptorType, ...]] = {}

    def weigh_root(self, root: object, keeps_objects: bool) -> int:
        """`keeps_objects`: API objects that are reached are this part's own."""
        self._keeps_objects = keeps_objects
        return self._own(root) + self._members(root, 0)

    def _own(self, value: object) -> int:
        self._held.append(value)
        return sys.getsizeof(value, 0)

    def _weigh(self, value: object, depth: int) -> int:
        if id(value) in self._seen or value is None or depth > DEEPEST:
            return 0
        if not self._keeps_objects and type(value) is dict and "metadata" in value:
            return 0
        self._seen.add(id(value))
        return self._own(value) + self._members(value, depth + 1)

    def _members(self, value: object, depth: int) -> int:
        kind = type(value)
        if kind is str or kind is bytes or kind is int:
            return 0
        if isinstance(value, dict):
            return self._many(list(value), depth) + self._many(list(value.values()), depth)
        if isinstance(value, _MANY):
            return self._many(list(value), depth)
        if kind.__module__.startswith(_OURS):
            slots = self._slots.get(kind)
            if slots is None:
                slots = self._slots[kind] = _slots_of(kind)
            if self.scattered and isinstance(value, KeepsObjects):
                return self._objects_of(value, depth)
            kept = [slot.__get__(value, kind) for slot in slots if _is_set(slot, value)]
            kept.append(getattr(value, "__dict__", None))
            return sum(self._weigh(each, depth) for each in kept)
        return sum(self._weigh(each, depth) for each in _references(value))

    def _objects_of(self, cache: "KeepsObjects", depth: int) -> int:
        """With those that it is there for; in its indices they are once more."""
        self._keeps_objects = True
        heavy = self._weigh(cache.kept_objects(), depth)
        self._keeps_objects = False
        return heavy + self._weigh(vars(cache), depth)

    def _many(self, members: list[Any], depth: int) -> int:
        if len(members) <= 4 * SAMPLE:
            return sum(self._weigh(member, depth) for member in members)
        # From the middle of equal shares: of the same order, the same ones are taken.
        step = len(members) / SAMPLE
        some = [members[int((number + 0.5) * step)] for number in range(SAMPLE)]
        # What all of them share is weighed with the first, once.
        first, *others = [self._weigh(member, depth) for member in some]
        return int(first + sum(others) / len(others) * (len(members) - 1))


def _references(value: object) -> Iterator[object]:
    """Of those of the library's that hold much."""
    if isinstance(value, partial):
        yield value.args
        yield value.keywords
    elif isinstance(value, Task):
        yield value.get_coro()
    elif isinstance(value, CoroutineType):
        yield value.cr_await


def _slots_of(kind: type) -> tuple[MemberDescriptorType, ...]:
    """Past whatever a subclass has put in their place: what a property makes, nobody keeps."""
    found = (each for base in kind.__mro__ for each in vars(base).values())
    return tuple(each for each in found if isinstance(each, MemberDescriptorType))


def _is_set(slot: MemberDescriptorType, value: object) -> bool:
    try:
        slot.__get__(value, type(value))
    except AttributeError:
        return False
    return True


def resident_bytes() -> int:
    """0 where the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
