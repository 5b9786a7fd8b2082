"""Places in objects, written as `spec.devices[].capacity{}.requestPolicy`.

Job: is there something at a place; take it away. Pure.
Invariant: what has another shape than the place says is left alone: validation tells of it.
"""

from collections.abc import Iterable, Iterator

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


def clear(obj: Obj, place: Place) -> None:
    """Only who holds the field is touched: the rest may be others', too."""
    for holder in holders(obj, place.way):
        if place.field in holder:
            del holder[place.field]


def holders(obj: Obj, way: tuple[tuple[str, str], ...]) -> Iterator[Obj]:
    """Everything that the way leads to."""
    if not way:
        yield obj
        return
    (key, shape), rest = way[0], way[1:]
    value = obj.get(key)
    if not value:
        return
    if shape == "":
        inner: Iterable[object] = (value,)
    elif shape == "[]":
        inner = value if isinstance(value, list) else ()
    else:
        inner = value.values() if isinstance(value, dict) else ()
    for item in inner:
        if isinstance(item, dict):
            yield from holders(item, rest)
