"""Places in objects, written as `spec.devices[].capacity{}.requestPolicy`.

Job: is there something at a place; take it away. Pure.
Invariant: what has another shape than the place says is left alone: validation tells of it.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The last step is the field; those before lead to who holds it."""

    way: tuple[tuple[str, str], ...]  # (key, "" | "[]" | "{}")
    field: str


def place_of(text: str) -> Place:
    *way, field = text.split(".")
    return Place(tuple(_step(step) for step in way), field)


def _step(text: str) -> tuple[str, str]:
    return (text[:-2], text[-2:]) if text.endswith(("[]", "{}")) else (text, "")


def is_used(obj: Obj, places: Iterable[Place]) -> bool:
    return any(
        holder.get(place.field) not in (None, [], {})
        for place in places
        for holder in holders(obj, place.way)
    )


def is_there(obj: Obj, place: Place) -> bool:
    """The field, whatever it says."""
    return any(place.field in holder for holder in holders(obj, place.way))


def clear(obj: Obj, place: Place) -> None:
    """Only who holds the field is touched: the rest may be others', too."""
    for holder in holders(obj, place.way):
        if place.field in holder:
            del holder[place.field]


def holders(obj: Obj, way: tuple[tuple[str, str], ...]) -> list[Obj]:
    """Everything that the way leads to. Every write of a pod asks for several: step by step, and
    not by a call for each."""
    found = [obj]
    for key, shape in way:
        inner: list[Obj] = []
        for held in found:
            value = held.get(key)
            if not value:
                continue
            if shape == "":
                value = (value,)
            elif shape == "[]":
                value = value if isinstance(value, list) else ()
            else:
                value = value.values() if isinstance(value, dict) else ()
            inner += [item for item in value if isinstance(item, dict)]
        found = inner
    return found
