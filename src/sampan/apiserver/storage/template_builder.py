"""Builder of objects of one text template: its strings in, an object with shared parts out.

Job: write one Python function for a form of texts: what is the same in all of them is there
    already, what comes again and again is looked up by its strings, the rest is made anew.
Invariant: an object and its metadata are its own, whatever they are equal to: they get a revision.
Invariant: nothing of a text becomes code but strings as Python writes them.
Invariant: what is looked up is bounded in number.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from sampan.api.objects import Obj
from sampan.core.bounded import Computed
from sampan.core.patterns import lazy_pattern

MARK = "\ue000"  # around the number of a slot; a text that has it of its own has no form
REMEMBERED = 16_384
_MARKED = lazy_pattern(f"{MARK}(\\d+){MARK}")
DEEPEST = 40  # what Python's own compiler likes, and more than a pod has
Place = tuple[str | int, ...]
_OWN: tuple[Place, ...] = ((), ("metadata",))


class _Memory(Computed[Any, Any]):
    """What was built of the strings of some slots, made at the first question."""

    __slots__ = ("slots",)

    def __init__(self, slots: set[int]) -> None:
        super().__init__(REMEMBERED, _same)
        self.slots = slots


def builder_of(pieces: Sequence[str], slots: Sequence[int]) -> "TemplateBuilder | None":
    """Of a text in pieces, some of which differ in others. None: it is nested too deeply."""
    marked = list(pieces)
    for number, slot in enumerate(slots):
        marked[slot] = f"{MARK}{number}{MARK}"
    pattern: Obj = orjson.loads("".join(marked))
    return TemplateBuilder(pattern, len(slots)) if _is_within(pattern, DEEPEST) else None


class TemplateBuilder:
    def __init__(self, pattern: Obj, slots: int) -> None:
        """`pattern`: an object with marks where the slots are."""
        self._pattern, self._count = pattern, slots
        self._rare: list[set[int]] = []  # slots whose strings, together, hardly come again
        self._write()

    def obj(self, values: Sequence[str]) -> Obj:
        found: Obj = self._build(*values)
        return found

    def review(self, texts: int) -> None:
        """After so many texts, or so many more: what was hardly ever found again among them is not
        looked up any more."""
        rare = [memory.slots for memory in self._memories if memory.misses * 2 > texts]
        for memory in self._memories:
            memory.misses = 0
        if rare:
            self._rare += rare
            self.forget()
            self._write()

    def forget(self) -> None:
        """What it has written refers to what it was written for, and back: without this, all would
        stay until somebody looks for garbage."""
        self._scope.clear()

    def _write(self) -> None:
        self._scope: dict[str, Any] = {}
        self._memories: list[_Memory] = []
        arguments = ", ".join(f"v{number}" for number in range(self._count))
        source = f"lambda {arguments}: {self._expression(self._pattern, (), None)}"
        self._build: Callable[..., Any] = eval(source, self._scope)

    def _name(self, value: Any) -> str:
        name = f"n{len(self._scope)}"
        self._scope[name] = value
        return name

    def _expression(self, value: Any, place: Place, outer: _Memory | None) -> str:
        if place in _OWN:
            return self._literal(value, place, outer)
        slots = _slots_in(value)
        if not slots:
            return self._name(value)
        # By the same strings it would be asked only where the other one has missed, too.
        is_asked = outer is not None and outer.slots == slots
        if is_asked or any(rare <= slots for rare in self._rare):
            return self._literal(value, place, outer)
        memory = _Memory(slots)
        self._memories.append(memory)
        literal = self._literal(value, place, memory)
        names = ", ".join(f"v{slot}" for slot in sorted(slots))
        if len(slots) > 1:
            memory.make = eval(f"lambda key: (lambda {names}: {literal})(*key)", self._scope)
        elif literal != names:
            memory.make = eval(f"lambda {names}: {literal}", self._scope)
        return f"{self._name(memory)}[{names}]"

    def _literal(self, value: Any, place: Place, outer: _Memory | None) -> str:
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, list):
            parts = (self._expression(each, (*place, at), outer) for at, each in enumerate(value))
            return f"[{', '.join(parts)}]"
        pairs = (
            f"{_text(key)}: {self._expression(each, (*place, key), outer)}"
            for key, each in value.items()
        )
        return f"{{{', '.join(pairs)}}}"


def _same(key: Any) -> Any:
    return key


def _is_within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_within(each, levels - 1) for each in inner)


def _slots_in(value: Any) -> set[int]:
    if isinstance(value, str):
        return {int(number) for number in _MARKED.findall(value)}
    if isinstance(value, dict):
        return set().union(*map(_slots_in, value), *map(_slots_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(_slots_in, value))
    return set()


def _text(value: str) -> str:
    """A string with slots in it, as an expression."""
    parts = _MARKED.split(value)  # text, slot, text, slot, …, text
    found = [
        f"v{part}" if at % 2 else repr(part) for at, part in enumerate(parts) if at % 2 or part
    ]
    return " + ".join(found) or "''"
